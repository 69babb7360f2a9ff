"""Scores of pairs and choices among texts, against Hugging Face's own networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import BertForMultipleChoice, BertForSequenceClassification, PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.parts.heads.multiple_choice import MultipleChoiceHead
from pipelines.parts.heads.regression import RegressionHead
from pipelines.parts.objectives.cross_entropy import CrossEntropy
from pipelines.parts.objectives.squared_error import SquaredError
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.heads.small_parts import BODIES, loss_of, small_network, task_of, tensors
from tests.small_corpus import documents

PAIRS = [
    {"text_a": a, "text_b": b, "label": 0.5 * i}
    for i, (a, b) in enumerate(zip(documents("xml")[:6], documents("json")[:6], strict=True))
]
SCORES = task_of("pair_regression")
CHOICES = task_of("multiple_choice")
QUESTIONS = [
    {"context": text, "question": "Which module is it?", "choices": choices, "answer": answer}
    for text, choices, answer in zip(
        documents("xml")[:4],
        (["json", "xml", "email"], ["xml", "tkinter"], ["a", "b", "c", "xml"], ["no", "yes"]),
        (1, 0, 3, 1),
        strict=True,
    )
]
EVERY = np.arange(4)


class FirstToken(torch.nn.Module):
    """Our heads have no dense layer between the first token and the scores."""

    def forward(self, states: torch.Tensor) -> torch.Tensor:
        return states[:, 0]


def test_the_regression_loss_is_hugging_faces_own(tokenizer: PreTrainedTokenizerFast) -> None:
    head = RegressionHead(pooling="cls")
    network = small_network(head, SCORES, tokenizer)
    batch = tensors(head.encode(PAIRS, SCORES, tokenizer, 64), np.arange(6))
    theirs = BertForSequenceClassification(network.config).eval()
    assert not theirs.load_state_dict(network.state_dict(), strict=False).unexpected_keys
    theirs.bert.pooler = FirstToken()
    inputs = {str(name): value for name, value in batch.items() if name != Field.SCORES}
    expected = theirs(**inputs, labels=batch[Field.SCORES]).loss
    signals = head.signals(network, batch, frozenset())
    torch.testing.assert_close(loss_of(SquaredError(), batch, signals), expected, atol=1e-6, rtol=1e-6)
    scaled = RegressionHead(pooling="cls", middle=2.5, scale=1.5).signals(network, batch, frozenset())[Signal.SCORE]
    torch.testing.assert_close(scaled, 2.5 + 1.5 * signals[Signal.SCORE])
    answers = head.answer(network, head.encode(PAIRS, SCORES, tokenizer, 64), _heard(scaled), SCORES, tokenizer)
    assert answers == scaled.tolist()


def _heard(scores: torch.Tensor):  # type: ignore[no-untyped-def]
    for item in (4, 1, 5, 0, 2, 3):
        yield np.array([item]), {}, {Signal.SCORE: scores[item : item + 1]}


def test_the_choice_loss_is_hugging_faces_own(tokenizer: PreTrainedTokenizerFast) -> None:
    head = MultipleChoiceHead(pooling="cls")
    network = small_network(head, CHOICES, tokenizer)
    questions = [question for question in QUESTIONS if len(question["choices"]) == 2]
    batch = tensors(head.encode(questions, CHOICES, tokenizer, 64), np.arange(2))
    theirs = BertForMultipleChoice(network.config).eval()
    assert not theirs.load_state_dict(network.state_dict(), strict=False).unexpected_keys
    theirs.bert.pooler = FirstToken()
    rows = {str(name): v.view(2, 2, -1) for name, v in batch.items() if name not in (Field.LABELS, Field.CHOICES)}
    expected = theirs(**rows, labels=batch[Field.LABELS]).loss
    ours = loss_of(CrossEntropy(), batch, head.signals(network, batch, frozenset()))
    torch.testing.assert_close(ours, expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("pooling", ["mean", "last", "concat"])
def test_questions_of_different_width_share_a_batch(
    body: str, pooling: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    head = MultipleChoiceHead(pooling=pooling)
    network = small_network(head, CHOICES, tokenizer, body)
    encoded = head.encode(QUESTIONS, CHOICES, tokenizer, 48)
    batch = tensors(encoded, EVERY)
    assert batch[Field.INPUT_IDS].shape[0] == 16 and batch[Field.CHOICES].sum(1).tolist() == [3, 2, 4, 2]
    together = head.signals(network, batch, frozenset())[Signal.LOGITS]
    for item, question in enumerate(QUESTIONS):
        alone = head.signals(network, tensors(encoded, EVERY[item : item + 1]), frozenset())[Signal.LOGITS]
        count = len(question["choices"])
        # another shape of batch sums in another order
        torch.testing.assert_close(together[item, :count], alone[0], atol=1e-5, rtol=0)
        assert torch.isneginf(together[item, count:]).all()
    loss = loss_of(CrossEntropy(), batch, {Signal.LOGITS: together})
    loss.backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())
    answers = head.answer(network, encoded, [(EVERY, batch, {Signal.LOGITS: together})], CHOICES, tokenizer)
    assert answers == together.argmax(1).tolist() and isinstance(answers[0], int)


def test_a_long_context_loses_its_beginning_and_never_question_or_choice(tokenizer: PreTrainedTokenizerFast) -> None:
    head = MultipleChoiceHead()
    row = {**QUESTIONS[0], "context": "start " + " ".join(documents("xml")), "question": "which one?"}
    batch = head.encode([row], CHOICES, tokenizer, 24).collate(np.array([0]))
    for ids, choice in zip(batch[Field.INPUT_IDS], row["choices"], strict=True):
        text = tokenizer.decode(ids)
        assert text.endswith(f"which one? [SEP] {choice} [SEP]") and "start" not in text
        assert (ids != tokenizer.pad_token_id).sum() == 24


def test_mistakes_are_told(tokenizer: PreTrainedTokenizerFast) -> None:
    head = MultipleChoiceHead()
    with pytest.raises(DataError, match="example 1: its answer 2 is not the index of one of its 2 choices"):
        head.encode([QUESTIONS[0], {**QUESTIONS[1], "answer": 2}], CHOICES, tokenizer, 48)
    with pytest.raises(DataError, match="example 0: its column 'choices' holds 1"):
        head.encode([{**QUESTIONS[0], "choices": ["xml"]}], CHOICES, tokenizer, 48)
    with pytest.raises(DataError, match="example 2: its label 'high' is not a finite number"):
        RegressionHead().encode([*PAIRS[:2], {**PAIRS[2], "label": "high"}], SCORES, tokenizer, 48)
