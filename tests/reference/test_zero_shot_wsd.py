"""Senses by definitions: scores against the equation in float64, on plain transformers' states."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
import torch
from transformers import BertModel, PreTrainedTokenizerFast

from pipelines.errors import DataError, RecipeError
from pipelines.networks.sense_scorer import SenseScorer
from pipelines.parts.heads.sense_definitions import SENSE_ROWS, WORD_TOKENS, SenseDefinitionsHead
from pipelines.parts.objectives.cross_entropy import CrossEntropy
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.heads.small_parts import answers_after_training, small_network, task_of, tensors

TASK = task_of("word_senses")
EXAMPLES: list[dict[str, Any]] = [
    {
        "context": "The parser returns the element of the tree.",
        "word": "element",
        "word_index": 23,
        "definitions": ["a node of a document", "a chemical", "a part of a set"],
        "answer": 0,
        "unseen": 0,
    },
    {
        "context": "An element is added to the set.",
        "word": "element",
        "word_index": 3,
        "definitions": ["a node of a document", "a part of a set"],
        "answer": 1,
        "unseen": 0,
    },
]
LENGTH = 32


def test_a_definition_is_scored_against_the_word_whatever_it_is_batched_with(
    tokenizer: PreTrainedTokenizerFast,
) -> None:
    head = SenseDefinitionsHead()
    network = cast("SenseScorer", small_network(head, TASK, tokenizer).double())
    torch.nn.init.normal_(network.word_to_definition.bias)
    batch = tensors(head.encode(EXAMPLES, TASK, tokenizer, LENGTH), np.arange(2))
    assert batch[SENSE_ROWS].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
    logits = head.signals(network, batch, frozenset())[Signal.LOGITS].detach().numpy()
    backbone = cast("BertModel", network.base_model)

    def states(text: str) -> np.ndarray:
        return np.asarray(backbone(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].detach())

    matrix, offset = (each.detach().numpy() for each in network.word_to_definition.parameters())
    for row, example in enumerate(EXAMPLES):
        encoded = tokenizer(example["context"])
        begin, end = example["word_index"], example["word_index"] + len(example["word"])
        tokens = range(encoded.char_to_token(begin), encoded.char_to_token(end - 1) + 1)
        assert batch[WORD_TOKENS][row].nonzero().ravel().tolist() == [*tokens]
        word = states(example["context"])[[*tokens]].mean(0)
        for choice, text in enumerate(example["definitions"]):
            definition = states(text).mean(0)
            expected = word @ matrix.T @ definition + offset @ definition
            assert logits[row, choice] == pytest.approx(expected, rel=1e-9)
    assert np.isneginf(logits[1, 2])


def test_of_a_long_context_the_tokens_around_the_word_are_read(tokenizer: PreTrainedTokenizerFast) -> None:
    before = "A sentence of many words, none of which is it. " * 20
    context = f"{before}The element is here. {before}"
    example = EXAMPLES[0] | {"context": context, "word_index": context.index("element")}
    encoded = SenseDefinitionsHead().encode([example], TASK, tokenizer, LENGTH)
    fields = encoded.collate(np.arange(1))
    ids, words = fields[Field.INPUT_IDS][0], fields[WORD_TOKENS][0].astype(bool)
    assert len(ids) <= LENGTH and tokenizer.decode(ids[words]).replace(" ", "") == "element"
    assert LENGTH // 3 < np.flatnonzero(words).mean() < 2 * LENGTH // 3
    assert "is here" in tokenizer.decode(ids)


def test_training_chooses_by_context(tokenizer: PreTrainedTokenizerFast) -> None:
    head, objective = SenseDefinitionsHead(), CrossEntropy()
    network = small_network(head, TASK, tokenizer)
    encoded = head.encode(EXAMPLES, TASK, tokenizer, LENGTH)
    answers = answers_after_training(head, objective, network, encoded, TASK, tokenizer, 60)
    assert answers == [0, 1]


def test_rows_that_were_stored_are_the_same_batch(tokenizer: PreTrainedTokenizerFast) -> None:
    encoded = SenseDefinitionsHead().encode(EXAMPLES, TASK, tokenizer, LENGTH)
    again = encoded.with_columns(EXAMPLES, encoded.columns())
    first, second = (each.collate(np.asarray([1, 0])) for each in (encoded, again))
    assert first.keys() == second.keys() and all((first[name] == second[name]).all() for name in first)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"context": None}, "example 1: the column 'context' is missing or empty"),
        ({"word_index": 4}, "example 1: the column 'word' holds 'element', which is not at character 4 of 'context'"),
        ({"definitions": ["one"]}, "example 1: the column 'definitions' holds 1, expected two or more"),
        ({"answer": 3}, "example 1: the column 'answer' holds 3, expected an index from 0 to 2"),
    ],
)
def test_an_example_that_lacks_something_is_refused_with_its_number(
    change: dict[str, object], says: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    wrong = [EXAMPLES[1], {**EXAMPLES[0], **change}]
    with pytest.raises(DataError, match=says):
        SenseDefinitionsHead().encode(wrong, TASK, tokenizer, LENGTH)


def test_a_row_without_room_is_refused(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(RecipeError, match="budget.length: 2 tokens have no room"):
        SenseDefinitionsHead().encode(EXAMPLES, TASK, tokenizer, 2)
