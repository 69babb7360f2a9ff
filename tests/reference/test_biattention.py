"""The biattentive classification network against the equations of McCann et al. 2017 in float64, text by text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.networks.bilstm import BilstmConfig, register_auto_classes
from pipelines.parts.heads.biattentive_classification import BiattentiveClassificationHead
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field, Signal

PAIRS: list[dict[str, Any]] = [
    {"text_a": "read the log file", "text_b": "the file is read", "label": "same"},
    {"text_a": "decode", "text_b": "a long description of the parser of the module", "label": "other"},
    {"text_a": "write a log of the module", "text_b": "parse", "label": "other"},
]
TEXTS: list[dict[str, Any]] = [{"text": one["text_a"], "label": one["label"]} for one in PAIRS]
LABELS = ("other", "same")
HEAD = BiattentiveClassificationHead(size=6)


def task(family: str) -> Task:
    return Task(TaskFamily.model_validate(family), LABELS)


def built(tokenizer: PreTrainedTokenizerFast, family: str) -> Any:
    register_auto_classes()
    torch.manual_seed(0)
    config = BilstmConfig(vocab_size=len(tokenizer), hidden_size=8, embedding_size=7, pad_token_id=0)
    return HEAD.build(config, task(family)).double().eval()


def scores_of(network: Any, tokenizer: PreTrainedTokenizerFast, family: str, rows: Any) -> NDArray[np.float64]:
    encoded = HEAD.encode(rows, task(family), tokenizer, 32)
    batch = {name: torch.from_numpy(value) for name, value in encoded.collate(np.arange(len(rows))).items()}
    logits: NDArray[np.float64] = HEAD.signals(network, batch, frozenset({Signal.LOGITS}))[Signal.LOGITS].numpy()
    return logits


def encoded_alone(network: Any, tokenizer: PreTrainedTokenizerFast, text: str) -> NDArray[np.float64]:
    """[L, A]: biLSTM(ReLU(W x + b)) of one text, read without padding."""
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    states = network.projection(network.base_model(input_ids=ids).last_hidden_state)
    result: NDArray[np.float64] = network.encoder(torch.clamp(states, min=0))[0][0].numpy()
    return result


def softmax(energies: NDArray[np.float64]) -> NDArray[np.float64]:
    powers = np.exp(energies)
    shares: NDArray[np.float64] = powers / powers.sum(-1, keepdims=True)
    return shares


def pooled(network: Any, x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """[4 A]: what is said of the text `x` [L, A] with the other text `y` [L', A]."""
    summary = softmax(x @ y.T) @ y
    joined = torch.from_numpy(np.concatenate([x, x - summary, x * summary], axis=1))
    states = network.integrator(joined[None])[0][0].numpy()
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    shares = softmax(states @ weights["attention.weight"][0] + weights["attention.bias"][0])
    return np.concatenate([states.max(0), states.mean(0), states.min(0), shares @ states])


@pytest.mark.parametrize("family", ["pair_classification", "text_classification"])
@torch.no_grad()
def test_scores_are_those_of_the_equations(tokenizer: PreTrainedTokenizerFast, family: str) -> None:
    pairs = family == "pair_classification"
    network = built(tokenizer, family)
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    scores = scores_of(network, tokenizer, family, PAIRS if pairs else TEXTS)
    for row, example in enumerate(PAIRS):
        x, y = (encoded_alone(network, tokenizer, example[name]) for name in ("text_a", "text_b"))
        features = np.concatenate([pooled(network, x, y), pooled(network, y, x)]) if pairs else pooled(network, x, x)
        units = (weights["maxout.weight"] @ features + weights["maxout.bias"]).reshape(-1, 4).max(1)
        expected = weights["classifier.weight"] @ units + weights["classifier.bias"]
        assert scores[row] == pytest.approx(expected, abs=1e-9)


@torch.no_grad()
def test_an_example_does_not_depend_on_the_others_of_its_batch(tokenizer: PreTrainedTokenizerFast) -> None:
    network = built(tokenizer, "pair_classification")
    together = scores_of(network, tokenizer, "pair_classification", PAIRS)
    for row, example in enumerate(PAIRS):
        alone = scores_of(network, tokenizer, "pair_classification", [example])
        assert alone[0] == pytest.approx(together[row], abs=1e-12)


def test_a_text_that_is_missing_is_named(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(DataError, match="example 1: the column 'text_b' is missing or empty"):
        HEAD.encode([PAIRS[0], {**PAIRS[1], "text_b": None}], task("pair_classification"), tokenizer, 32)


def test_the_rows_of_a_pair_are_adjacent(tokenizer: PreTrainedTokenizerFast) -> None:
    fields = HEAD.encode(PAIRS, task("pair_classification"), tokenizer, 32).collate(np.arange(3))
    assert fields[Field.INPUT_IDS].shape[0] == 6 and fields[Field.LABELS].tolist() == [1, 0, 0]
