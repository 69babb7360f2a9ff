"""GPT's input transformations (Radford et al. 2018, §3.3), from the tokenizer's frame to the scores."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from pipelines.parts.heads import Head
from pipelines.parts.objectives import TrainingStep
from pipelines.parts.objectives.causal_lm import CausalLM
from pipelines.parts.tokenizers.gpt_bpe import GPTBPE
from pipelines.task_families import Row, Task, TaskFamily
from pipelines.vocabulary import Field, Signal
from tests.small_corpus import LABELS, documents

TEXTS = [{"text": documents(label)[0][:60], "label": label} for label in LABELS]
PAIRS = [
    {
        "text_a": documents("json")[row][:40],
        "text_b": documents("logging")[row][:70],
        "label": label,
        "score": float(row),
    }
    for row, label in enumerate(LABELS)
]
QUESTIONS = [
    {"context": "A log.", "question": "What is it?", "choices": ["a log", "a file", "nothing at all"], "answer": 0},
    {"context": "A file is open.", "question": "Which one?", "choices": ["the file", "the log"], "answer": 1},
]


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    return GPTBPE(vocab_size=600).train(documents("logging", "argparse", "email", "json"))


def read(family: str, rows: list[Any], head: dict[str, Any]) -> tuple[Any, Any, dict[Field, Tensor]]:
    """A head, a new network under it, and its batch of `rows`."""
    kind, asked = TaskFamily.model_validate(family), Head.model_validate({"pooling": "last", **head})
    task = Task(kind, tuple(kind.labels(rows)))
    torch.manual_seed(0)
    config = GPT2Config(
        vocab_size=640, n_embd=32, n_layer=2, n_head=2, n_positions=64, bos_token_id=None, eos_token_id=None
    )
    network = asked.build(config, task).eval()
    encoded = asked.encode(rows, task, tokenizer(), 64)
    return (
        asked,
        network,
        {name: torch.from_numpy(value) for name, value in encoded.collate(np.arange(len(rows))).items()},
    )


def shown(batch: dict[Field, Tensor]) -> list[str]:
    """What each row of the batch says, frame and all."""
    pairs = zip(batch[Field.INPUT_IDS].flatten(0, -2), batch[Field.ATTENTION_MASK].flatten(0, -2), strict=True)
    return [tokenizer().decode(ids[mask == 1]) for ids, mask in pairs]


@torch.no_grad()
def said(asked: Head, network: Any, batch: dict[Field, Tensor], signal: Signal = Signal.LOGITS) -> Tensor:
    heard: Tensor = asked.signals(network, batch, frozenset({signal}))[signal]
    return heard


def test_a_text_stands_between_start_and_extract() -> None:
    _, _, batch = read("text_classification", TEXTS, {"name": "sequence_classification"})
    assert shown(batch) == [f"<s> {row['text']}<e>" for row in TEXTS]


def test_a_pair_is_one_row_with_a_delimiter() -> None:
    _, _, batch = read("pair_classification", PAIRS, {"name": "sequence_classification"})
    assert shown(batch) == [f"<s> {row['text_a']}<$> {row['text_b']}<e>" for row in PAIRS]


@pytest.mark.parametrize(
    ("family", "name"), [("pair_classification", "sequence_classification"), ("pair_regression", "regression")]
)
def test_a_similarity_is_read_in_both_orders_and_has_none(family: str, name: str) -> None:
    number = family == "pair_regression"
    rows = [{**row, "label": row["score"] if number else row["label"]} for row in PAIRS]
    swapped = [{**row, "text_a": row["text_b"], "text_b": row["text_a"]} for row in rows]
    signal = Signal.SCORE if number else Signal.LOGITS
    asked, network, batch = read(family, rows, {"name": name, "both_orders": True})
    first = [f"<s> {row['text_a']}<$> {row['text_b']}<e>" for row in rows]
    second = [f"<s> {row['text_b']}<$> {row['text_a']}<e>" for row in rows]
    assert shown(batch) == [row for both in zip(first, second, strict=True) for row in both]
    ours = said(asked, network, batch, signal)
    # a sum of two terms has no order: what is left is the order of rows in a batch
    torch.testing.assert_close(
        said(*read(family, swapped, {"name": name, "both_orders": True}), signal), ours, atol=1e-6, rtol=0
    )
    one, other = (said(*read(family, some, {"name": name}), signal) for some in (rows, swapped))
    assert (one - other).abs().max() > 1e-4, "read in one order, the order matters"


def test_each_choice_is_read_behind_its_question_and_choices_compete() -> None:
    asked, network, batch = read("multiple_choice", QUESTIONS, {"name": "multiple_choice"})
    rows = [f"<s> {row['context']} {row['question']}<$> {choice}<e>" for row in QUESTIONS for choice in row["choices"]]
    # a place without a choice still has a token to read
    assert shown(batch) == [*rows, "<s>"]
    scores = said(asked, network, batch)
    turned: list[Row] = [{**QUESTIONS[0], "choices": QUESTIONS[0]["choices"][::-1]}, QUESTIONS[1]]
    other = said(*read("multiple_choice", turned, {"name": "multiple_choice"}))
    torch.testing.assert_close(other[0], scores[0].flip(0), atol=1e-6, rtol=0)
    assert scores.shape == (2, 3) and float(scores[1, 2]) == -torch.inf
    assert len(set(scores[0].tolist())) == 3


def test_the_vector_of_a_row_is_that_of_its_extract_token() -> None:
    asked, network, batch = read("text_classification", TEXTS, {"name": "sequence_classification"})
    pooled = said(asked, network, batch, Signal.POOLED)
    with torch.no_grad():
        top = network.base_model(batch[Field.INPUT_IDS], attention_mask=batch[Field.ATTENTION_MASK]).last_hidden_state
    extract = batch[Field.INPUT_IDS] == tokenizer().convert_tokens_to_ids("<e>")
    assert extract.sum(1).tolist() == [1] * len(TEXTS)
    torch.testing.assert_close(pooled, top[extract], atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("family", "rows", "head"),
    [
        ("text_classification", TEXTS, {"name": "sequence_classification"}),
        ("pair_classification", PAIRS, {"name": "sequence_classification", "both_orders": True}),
        ("multiple_choice", QUESTIONS, {"name": "multiple_choice"}),
    ],
)
def test_the_auxiliary_loss_is_gpt2s_own_over_all_rows(family: str, rows: list[Any], head: dict[str, Any]) -> None:
    asked, network, batch = read(family, rows, head)
    heard = asked.signals(network, batch, frozenset({Signal.LOGITS, Signal.NEXT_LOGITS}))
    objective = CausalLM(weight=0.5)
    told = objective.loss(TrainingStep(batch, heard, network, lambda *_: {}))["causal_lm"]
    theirs = GPT2LMHeadModel(network.config).eval()
    theirs.transformer.load_state_dict(network.base_model.state_dict())
    theirs.tie_weights()
    ids, mask = (batch[name].flatten(0, -2) for name in (Field.INPUT_IDS, Field.ATTENTION_MASK))
    with torch.no_grad():
        expected = theirs(ids, attention_mask=mask, labels=ids.masked_fill(mask == 0, -100)).loss
    assert float(told.detach()) == pytest.approx(float(expected), rel=1e-5)
    told.backward()
    assert network.base_model.wte.weight.grad.abs().sum() > 0
