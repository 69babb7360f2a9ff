"""KEPLER: facts about described entities against the equations of the paper in float64."""

from __future__ import annotations

from typing import Literal, cast

import numpy as np
import pytest
import torch
from transformers import BertModel, PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.parts.heads.described_entities import FACT_ROWS, DescribedEntitiesHead
from pipelines.parts.objectives.knowledge_embedding import KnowledgeEmbedding
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.heads.small_parts import answers_after_training, loss_of, small_network, task_of, tensors
from tests.small_corpus import documents

TASK = task_of("multiple_choice")
FACTS = [
    {"context": text[:200], "question": "belongs to", "choices": choices, "answer": answer}
    for text, choices, answer in zip(
        documents("xml")[:3],
        (["the json module", "the xml module"], ["xml", "email", "a window of tkinter"], ["logging", "xml"]),
        (1, 0, 1),
        strict=True,
    )
]
LENGTH = 24


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_a_fact_is_scored_by_the_distance_of_vectors_whatever_it_is_batched_with(
    pooling: Literal["cls", "mean"], tokenizer: PreTrainedTokenizerFast
) -> None:
    head = DescribedEntitiesHead(pooling=pooling)
    network = small_network(head, TASK, tokenizer).double()
    batch = tensors(head.encode(FACTS, TASK, tokenizer, LENGTH), np.arange(3))
    assert batch[FACT_ROWS].tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1], [1, 1, 1, 1, 0]]
    logits = head.signals(network, batch, frozenset())[Signal.LOGITS].detach().numpy()
    backbone = cast("BertModel", network.base_model)

    def vector(text: str) -> np.ndarray:
        inputs = tokenizer(text, truncation=True, max_length=LENGTH, return_tensors="pt")
        states = backbone(**inputs).last_hidden_state[0].detach().numpy()
        return np.asarray(states[0] if pooling == "cls" else states.mean(0))

    for row, fact in enumerate(FACTS):
        h, r = vector(cast("str", fact["context"])), vector(cast("str", fact["question"]))
        for choice, text in enumerate(cast("list[str]", fact["choices"])):
            assert logits[row, choice] == pytest.approx(-np.abs(h + r - vector(text)).sum(), rel=1e-9)
    assert np.isneginf(logits[[0, 2], 2]).all()


def test_the_loss_is_the_equation() -> None:
    scores = np.asarray([[-3.0, -9.0, -np.inf], [-7.5, -1.0, -2.0]])
    labels, margin = [0, 2], 4.0

    def log_sigmoid(x: float) -> float:
        return float(-np.log1p(np.exp(-x)))

    terms = [
        -log_sigmoid(margin - 3.0) - log_sigmoid(9.0 - margin),
        -log_sigmoid(margin - 2.0) - (log_sigmoid(7.5 - margin) + log_sigmoid(1.0 - margin)) / 2,
    ]
    batch = {Field.LABELS: torch.tensor(labels)}
    logits = torch.tensor(scores, requires_grad=True)
    loss = loss_of(KnowledgeEmbedding(margin=margin), batch, {Signal.LOGITS: logits})
    assert loss.item() == pytest.approx(np.mean(terms), rel=1e-6)
    torch.autograd.backward(loss)
    assert logits.grad is not None and logits.grad.isfinite().all()
    # the true fact is drawn near, the others are pushed away
    assert (logits.grad.sign() == torch.tensor([[-1, 1, 0], [1, 1, -1]])).all()


def test_training_learns_facts_whose_entities_share_words(tokenizer: PreTrainedTokenizerFast) -> None:
    head, objective = DescribedEntitiesHead(), KnowledgeEmbedding(margin=20)
    network = small_network(head, TASK, tokenizer)
    encoded = head.encode(FACTS, TASK, tokenizer, LENGTH)
    answers = answers_after_training(head, objective, network, encoded, TASK, tokenizer, 60)
    assert answers == [fact["answer"] for fact in FACTS]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"context": " "}, "example 1: its column 'context' is empty"),
        ({"question": None}, "example 1: its column 'question' is empty"),
        ({"choices": ["one"]}, "example 1: its column 'choices' holds 1, expected two or more"),
        ({"answer": 2}, "example 1: its answer 2 is not the index of one of its 2 choices, from 0"),
    ],
)
def test_a_fact_that_lacks_something_is_refused_with_its_number(
    change: dict[str, object], says: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    wrong = [FACTS[1], {**FACTS[0], **change}]
    with pytest.raises(DataError, match=says):
        DescribedEntitiesHead().encode(wrong, TASK, tokenizer, LENGTH)
