"""Dual BERT: what a token reads of the translation, against the equations in float64."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy.special import softmax
from transformers import BertModel, PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.networks.dual_span_extractor import DualSpanExtractor
from pipelines.parts.heads.dual_span_extraction import SOURCE_IDS, SOURCE_MASK, DualSpanExtractionHead
from pipelines.parts.heads.span_extraction import SpanExtractionHead
from pipelines.parts.objectives.span_cross_entropy import SpanCrossEntropy
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.heads.small_parts import answers_after_training, small_network, task_of, tensors

TASK = task_of("translated_spans")
EXAMPLES: list[dict[str, Any]] = [
    {
        "context": "Parse an XML file with a parser.",
        "question": "What is parsed?",
        "answer_texts": ["XML file"],
        "answer_starts": [9],
        "source_context": "A parser reads a file of XML, and gives its tree.",
        "source_question": "What is read by it?",
    },
    {
        "context": "Log a message.",
        "question": "What is logged?",
        "answer_texts": ["a message"],
        "answer_starts": [4],
        "source_context": "Write it.",
        "source_question": "What?",
    },
]
LENGTH = 32


def test_scores_are_the_equations_whatever_a_row_is_batched_with(tokenizer: PreTrainedTokenizerFast) -> None:
    head = DualSpanExtractionHead()
    network = cast("DualSpanExtractor", small_network(head, TASK, tokenizer).double())
    batch = tensors(head.encode(EXAMPLES, TASK, tokenizer, LENGTH), np.arange(2))
    logits = head.signals(network, batch, frozenset())[Signal.SPAN_LOGITS].detach().numpy()
    backbone = cast("BertModel", network.base_model)

    def states(question: str, context: str) -> np.ndarray:
        encoded = tokenizer(question, context, truncation=True, max_length=LENGTH, return_tensors="pt")
        return np.asarray(backbone(**encoded).last_hidden_state[0].detach())

    weights = {name: value.detach().numpy() for name, value in network.named_parameters()}
    for row, example in enumerate(EXAMPLES):
        target = states(example["question"], example["context"])
        source = states(example["source_question"], example["source_context"])
        root = np.sqrt(target.shape[1])
        own, others = (softmax(each @ each.T / root, axis=-1) for each in (target, source))
        read = softmax(own @ (target @ source.T / root) @ others.T, axis=-1) @ source
        total = target + read @ weights["source.weight"].T + weights["source.bias"]
        centred = total - total.mean(1, keepdims=True)
        fused = centred / np.sqrt(total.var(1, keepdims=True) + 1e-5)
        fused = fused * weights["norm.weight"] + weights["norm.bias"]
        both = np.concatenate([target, fused], axis=1)
        expected = both @ weights["qa_outputs.weight"].T + weights["qa_outputs.bias"]
        answerable = batch[Field.ANSWERABLE][row, : len(target)].numpy().astype(bool)
        assert answerable.any()
        np.testing.assert_allclose(logits[row, : len(target)][answerable], expected[answerable], rtol=1e-8)


def test_the_translation_is_read_and_without_it_the_head_is_the_plain_one(tokenizer: PreTrainedTokenizerFast) -> None:
    head, alone = DualSpanExtractionHead(), DualSpanExtractionHead(translation=False)
    network = small_network(head, TASK, tokenizer)
    other = [{**example, "source_context": "Something else."} for example in EXAMPLES]
    batch, changed = (tensors(head.encode(rows, TASK, tokenizer, LENGTH), np.arange(2)) for rows in (EXAMPLES, other))
    first, second = (head.signals(network, each, frozenset())[Signal.SPAN_LOGITS] for each in (batch, changed))
    assert not torch.equal(first, second)
    plain_network = small_network(alone, TASK, tokenizer)
    plain = SpanExtractionHead().signals(plain_network, batch, frozenset())[Signal.SPAN_LOGITS]
    same = [alone.signals(plain_network, each, frozenset())[Signal.SPAN_LOGITS] for each in (batch, changed)]
    assert torch.equal(same[0], plain) and torch.equal(same[1], plain)


def test_training_extracts_the_answer(tokenizer: PreTrainedTokenizerFast) -> None:
    head, objective = DualSpanExtractionHead(), SpanCrossEntropy()
    network = small_network(head, TASK, tokenizer)
    encoded = head.encode(EXAMPLES, TASK, tokenizer, LENGTH)
    answers = answers_after_training(head, objective, network, encoded, TASK, tokenizer, 80)
    assert answers == ["XML file", "a message"]


def test_every_window_of_a_long_context_has_the_whole_translation(tokenizer: PreTrainedTokenizerFast) -> None:
    long = {**EXAMPLES[0], "context": " ".join([EXAMPLES[0]["context"]] * 8)}
    encoded = DualSpanExtractionHead().encode([long, EXAMPLES[1]], TASK, tokenizer, LENGTH)
    assert len(encoded) > 4
    again = encoded.with_columns(encoded.examples, encoded.columns())
    for each in (encoded, again):
        fields = each.collate(np.arange(len(encoded)))
        rows = [ids[mask == 1].tolist() for ids, mask in zip(fields[SOURCE_IDS], fields[SOURCE_MASK], strict=True)]
        assert all(row == rows[0] for row in rows[:-1]) and rows[-1] != rows[0]


@pytest.mark.parametrize("name", ["source_question", "source_context"])
def test_a_translation_that_is_empty_is_refused_with_its_example(name: str, tokenizer: PreTrainedTokenizerFast) -> None:
    for value, says in ((None, "is missing or empty"), (" ", "is empty")):
        with pytest.raises(DataError, match=rf"example 1: the column '{name}' {says}"):
            DualSpanExtractionHead().encode([EXAMPLES[1], {**EXAMPLES[0], name: value}], TASK, tokenizer, LENGTH)
