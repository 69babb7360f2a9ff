"""Tagging by prototypes: scores and collapsed transitions against the equations in float64, on plain states."""

from __future__ import annotations

from itertools import product
from typing import Any, cast

import numpy as np
import pytest
import torch
from transformers import BertModel, PreTrainedTokenizerFast

from pipelines.errors import DataError
from pipelines.networks.prototype_tagger import IMPOSSIBLE, PrototypeTagger
from pipelines.parts.heads.prototype_tagging import EPISODE_ROWS, EPISODE_TAGS, PrototypeTaggingHead
from pipelines.parts.objectives.crf import Crf
from pipelines.task_families.few_shot_tagging import tags_of
from pipelines.vocabulary import Field, Signal
from tests.pipelines.parts.heads.small_parts import answers_after_training, small_network, task_of, tensors

TASK = task_of("few_shot_tagging")
EXAMPLES: list[dict[str, Any]] = [
    {
        "tokens": ["parse", "the", "xml", "file"],
        "tags": ["O", "O", "B-format", "O"],
        "support_tokens": [["read", "json", "text"], ["the", "class", "Element"]],
        "support_tags": [["O", "B-format", "I-format"], ["O", "O", "B-name"]],
    },
    {
        "tokens": ["a", "window"],
        "tags": ["O", "B-thing"],
        "support_tokens": [["one", "button"]],
        "support_tags": [["O", "B-thing"]],
    },
]
LENGTH = 32


def test_tags_are_scored_by_distances_from_the_means_of_the_support(tokenizer: PreTrainedTokenizerFast) -> None:
    head = PrototypeTaggingHead()
    network = cast("PrototypeTagger", small_network(head, TASK, tokenizer).double())
    torch.nn.init.constant_(network.temperature, 0.3)
    batch = tensors(head.encode(EXAMPLES, TASK, tokenizer, LENGTH), np.arange(2))
    assert batch[EPISODE_ROWS].tolist() == [[1, 1, 1], [1, 1, 0]]
    assert batch[EPISODE_TAGS].tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]
    logits = head.signals(network, batch, frozenset())[Signal.TAG_LOGITS].detach().numpy()[::3]
    backbone = cast("BertModel", network.base_model)

    def words(sentence: list[str]) -> np.ndarray:
        encoded = tokenizer(sentence, is_split_into_words=True, return_tensors="pt")
        states = backbone(**encoded).last_hidden_state[0].detach().numpy()
        return np.asarray([states[encoded.word_ids().index(word)] for word in range(len(sentence))])

    for row, example in enumerate(EXAMPLES):
        support = np.concatenate([words(sentence) for sentence in example["support_tokens"]])
        given = [tag for tags in example["support_tags"] for tag in tags]
        labels = batch[Field.TAG_LABELS][3 * row].numpy()
        assert [tags_of(example)[index] for index in labels[labels >= 0]] == example["tags"]
        for token, state in zip(np.flatnonzero(labels >= 0), words(example["tokens"]), strict=True):
            for number, tag in enumerate(tags_of(example)):
                shown = tag if tag in given else f"B{tag[1:]}"
                mean = support[[each == shown for each in given]].mean(0)
                expected = -np.exp(0.3) * ((state - mean) ** 2).sum() / np.sqrt(len(mean))
                assert logits[row, token, number] == pytest.approx(expected, rel=1e-9)
    assert (logits[1, :, 3:] == IMPOSSIBLE).all()


def test_a_transition_has_the_score_of_what_it_is_whatever_the_types(tokenizer: PreTrainedTokenizerFast) -> None:
    network = cast("PrototypeTagger", small_network(PrototypeTaggingHead(), TASK, tokenizer))
    torch.nn.init.normal_(network.collapsed)
    table = network.collapsed.detach()
    tags = ["O", *(f"{prefix}-{kind}" for kind in "abc" for prefix in "BI")]
    expanded = network.transitions(3).detach()
    columns = {"O": 0, "B same": 1, "B other": 2, "I same": 3, "I other": 4}
    for (row, before), (column, tag) in product(enumerate(["start", *tags]), enumerate([*tags, "end"])):
        source = {"s": 0, "O": 1, "B": 2, "I": 3}[before[0]]
        kind = "same" if before[1:] == tag[1:] else "other"
        target = 5 if tag == "end" else columns["O" if tag == "O" else f"{tag[0]} {kind}"]
        found = expanded[len(tags) if before == "start" else row - 1, len(tags) + 1 if tag == "end" else column]
        assert found == table[source, target], (before, tag)


def test_training_tags_and_the_transitions_are_left_out_on_request(tokenizer: PreTrainedTokenizerFast) -> None:
    head, objective = PrototypeTaggingHead(), Crf()
    network = small_network(head, TASK, tokenizer)
    encoded = head.encode(EXAMPLES, TASK, tokenizer, LENGTH)
    answers = answers_after_training(head, objective, network, encoded, TASK, tokenizer, 60)
    assert answers == [example["tags"] for example in EXAMPLES]
    batch = tensors(encoded, np.arange(2))
    signals = head.signals(network, batch, frozenset())
    assert signals[Signal.TAG_TRANSITIONS].any()
    alone = PrototypeTaggingHead(transitions=False).signals(network, batch, frozenset())
    assert not alone[Signal.TAG_TRANSITIONS].any()


def test_rows_that_were_stored_are_the_same_batch(tokenizer: PreTrainedTokenizerFast) -> None:
    encoded = PrototypeTaggingHead().encode(EXAMPLES, TASK, tokenizer, LENGTH)
    again = encoded.with_columns(EXAMPLES, encoded.columns())
    first, second = (each.collate(np.asarray([1, 0])) for each in (encoded, again))
    assert first.keys() == second.keys() and all((first[name] == second[name]).all() for name in first)


def test_words_beyond_the_row_are_outside(tokenizer: PreTrainedTokenizerFast) -> None:
    head = PrototypeTaggingHead()
    network = small_network(head, TASK, tokenizer)
    long = {**EXAMPLES[1], "tokens": ["window"] * 40, "tags": ["B-thing"] * 40}
    encoded = head.encode([long], TASK, tokenizer, LENGTH)
    batch = tensors(encoded, np.arange(1))
    outputs = [(np.arange(1), batch, head.signals(network, batch, frozenset()))]
    (answer,) = head.answer(network, encoded, outputs, TASK, tokenizer)
    assert len(answer) == 40 and set(answer[LENGTH:]) == {"O"}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"support_tokens": None}, "example 1: the column 'support_tokens' is missing or empty"),
        ({"tags": ["O"]}, "example 1: the column 'tags' holds 1 tags for 4 tokens"),
        ({"tags": ["B-x", "O", "O", "O"]}, "example 1: the column 'tags' holds the type 'x', which no support"),
    ],
)
def test_an_example_that_lacks_something_is_refused_with_its_number(
    change: dict[str, object], says: str, tokenizer: PreTrainedTokenizerFast
) -> None:
    with pytest.raises(DataError, match=says):
        PrototypeTaggingHead().encode([EXAMPLES[1], {**EXAMPLES[0], **change}], TASK, tokenizer, LENGTH)
