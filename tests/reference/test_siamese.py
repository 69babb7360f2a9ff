"""Pairs whose texts are read apart, against the equations of Conneau et al. 2017 in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from transformers import PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.networks.bilstm import BilstmConfig, register_auto_classes
from pipelines.parts.heads.siamese_classification import SiameseClassificationHead
from pipelines.task_families import Task, TaskFamily
from pipelines.vocabulary import Field, Signal

PAIRS: list[dict[str, Any]] = [
    {"text_a": "read the log file", "text_b": "the file is read", "label": "same"},
    {"text_a": "decode", "text_b": "a long description of the parser of the module", "label": "other"},
    {"text_a": "write a log of the module", "text_b": "parse", "label": "other"},
]
LABELS = ("other", "same")


def task(family: str) -> Task:
    return Task(TaskFamily.model_validate(family), LABELS)


def batch(head: SiameseClassificationHead, tokenizer: PreTrainedTokenizerFast, family: str, rows: Any) -> Any:
    encoded = head.encode(rows, task(family), tokenizer, 32)
    return {name: torch.from_numpy(value) for name, value in encoded.collate(np.arange(len(rows))).items()}


def built(head: SiameseClassificationHead, tokenizer: PreTrainedTokenizerFast, family: str) -> Any:
    register_auto_classes()
    torch.manual_seed(0)
    config = BilstmConfig(vocab_size=len(tokenizer), hidden_size=8, embedding_size=6, pad_token_id=0)
    return head.build(config, task(family)).double().eval()


@pytest.mark.parametrize("hidden", [None, 5])
@torch.no_grad()
def test_a_pair_is_scored_from_two_vectors(tokenizer: PreTrainedTokenizerFast, hidden: int | None) -> None:
    head = SiameseClassificationHead(hidden=hidden)
    network = built(head, tokenizer, "pair_classification")
    scores = head.signals(network, batch(head, tokenizer, "pair_classification", PAIRS), frozenset({Signal.LOGITS}))[
        Signal.LOGITS
    ].numpy()
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    for row, example in enumerate(PAIRS):
        u, v = (alone(network, tokenizer, example[name]) for name in ("text_a", "text_b"))
        features = np.concatenate([u, v, np.abs(u - v), u * v])
        if hidden is not None:
            features = np.tanh(weights["hidden.0.weight"] @ features + weights["hidden.0.bias"])
        wanted = weights["classifier.weight"] @ features + weights["classifier.bias"]
        assert scores[row] == pytest.approx(wanted, abs=1e-9)


def alone(network: Any, tokenizer: PreTrainedTokenizerFast, text: str) -> np.ndarray:
    """The largest value of each element over the tokens of one text, read without padding."""
    ids = torch.tensor([tokenizer(text)["input_ids"]])
    states = network.base_model(input_ids=ids).last_hidden_state[0].numpy()
    return np.asarray([max(states[:, element]) for element in range(states.shape[1])])


@torch.no_grad()
def test_a_text_is_scored_from_its_vector(tokenizer: PreTrainedTokenizerFast) -> None:
    rows = [{"text": one["text_a"], "label": one["label"]} for one in PAIRS]
    head = SiameseClassificationHead()
    network = built(head, tokenizer, "text_classification")
    scores = head.signals(network, batch(head, tokenizer, "text_classification", rows), frozenset({Signal.LOGITS}))
    weights = {name: value.numpy() for name, value in network.state_dict().items()}
    for row, example in enumerate(rows):
        wanted = weights["classifier.weight"] @ alone(network, tokenizer, example["text"]) + weights["classifier.bias"]
        assert scores[Signal.LOGITS][row].numpy() == pytest.approx(wanted, abs=1e-9)


@torch.no_grad()
def test_the_score_of_a_pair_depends_on_nothing_else_in_its_batch(tokenizer: PreTrainedTokenizerFast) -> None:
    head = SiameseClassificationHead()
    network = built(head, tokenizer, "pair_classification")
    whole = head.signals(network, batch(head, tokenizer, "pair_classification", PAIRS), head.answers_from)
    alone_ = head.signals(network, batch(head, tokenizer, "pair_classification", PAIRS[:1]), head.answers_from)
    assert torch.allclose(whole[Signal.LOGITS][:1], alone_[Signal.LOGITS])


def test_rows_of_a_pair_are_adjacent_and_bad_labels_are_named(tokenizer: PreTrainedTokenizerFast) -> None:
    head = SiameseClassificationHead()
    encoded = head.encode(PAIRS, task("pair_classification"), tokenizer, 32)
    fields = encoded.collate(np.asarray([2, 0]))
    texts = [PAIRS[2]["text_a"], PAIRS[2]["text_b"], PAIRS[0]["text_a"], PAIRS[0]["text_b"]]
    for row, text in enumerate(texts):
        ids = tokenizer(text)["input_ids"]
        assert fields[Field.INPUT_IDS][row, : len(ids)].tolist() == ids
        assert fields[Field.ATTENTION_MASK][row].sum() == len(ids)
    assert fields[Field.LABELS].tolist() == [0, 1]
    with pytest.raises(DataError, match="example 1: no training example has its label 'else'; known: other, same"):
        head.encode([PAIRS[0], {**PAIRS[1], "label": "else"}], task("pair_classification"), tokenizer, 32)
    with pytest.raises(DataError, match="'text_b' is missing or empty"):
        head.encode([{"text_a": "one", "label": "same"}], task("pair_classification"), tokenizer, 32)
