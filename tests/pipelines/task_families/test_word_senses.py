"""Senses of words: answers as text, senses that training has, and their scores."""

from __future__ import annotations

import pytest

from pipelines.task_families import TaskFamily
from tests.pipelines.task_families.rows import ROWS


def test_a_definition_is_named_by_its_number_or_its_words() -> None:
    senses, row = TaskFamily.model_validate("word_senses"), ROWS["word_senses"]
    texts = ("definition2", "a house  that keeps money", "sloping land beside water", "definition3", "choice1", "")
    assert [senses.read_answer(text, row, []) for text in texts] == [1, 1, 0, -1, -1, -1]


def test_records_with_candidates_are_converted() -> None:
    senses = TaskFamily.model_validate("word_senses")
    candidates = [("bank%1", "sloping land"), ("bank%2", "a house"), ("bank%3", "sloping land")]
    record = {
        "text": "on the bank",
        "start": 7,
        "end": 11,
        "sense": "bank%3",
        "candidates": [{"sense": sense, "gloss": gloss} for sense, gloss in candidates],
    }
    row = senses.join_side_tables(senses.convert_published(record, lambda reason, text: None), {})
    assert row == {
        "context": "on the bank",
        "word": "bank",
        "word_index": 7,
        "definitions": ["sloping land", "a house"],
        "answer": 0,
        "unseen": 0,
    }
    unknown = senses.convert_published({**record, "sense": "shore"}, lambda reason, text: None)
    problem = senses.problem(unknown)
    assert problem is not None and "'answer' holds None" in problem
    own = {"context": "so", "candidates": "none"}
    assert senses.convert_published(own, lambda reason, text: None) == own


def test_a_sense_is_seen_where_a_training_example_has_its_definition() -> None:
    senses, row = TaskFamily.model_validate("word_senses"), ROWS["word_senses"]
    other = {**row, "word": "shore", "context": "shore", "word_index": 0, "answer": 1}
    parts = {"train": [dict(row)], "validation": [dict(other)], "test": [dict(row), {**row, "answer": 1}]}
    senses.complete(parts)
    assert {part: [one["unseen"] for one in rows] for part, rows in parts.items()} == {
        "train": [0],
        "validation": [1],
        "test": [0, 1],
    }


def test_a_word_follows_its_context_through_repairs() -> None:
    senses, row = TaskFamily.model_validate("word_senses"), ROWS["word_senses"]
    context = "A  bank  is on the bank."
    spread = {**row, "context": context, "word_index": context.rindex("bank")}
    repaired = senses.repair_texts(spread, lambda text: " ".join(text.split()))
    assert senses.problem(repaired) is None and repaired["word_index"] == 17


def test_senses_without_an_example_are_counted_apart_and_against_chance() -> None:
    senses = TaskFamily.model_validate("word_senses")
    gold = [(0, 2, True), (1, 4, True), (1, 2, False), (0, 3, False)]
    assert senses.scores(senses.statistics(gold, [0, 0, 1, 0], [])) == {
        "accuracy": 0.75,
        "unseen_accuracy": 0.5,
        "unseen_above_chance": pytest.approx(0.5 - (1 / 2 + 1 / 4) / 2),
    }
    assert senses.scores(senses.statistics(gold[2:], [1, 0], [])) == {
        "accuracy": 1.0,
        "unseen_accuracy": 0.0,
        "unseen_above_chance": 0.0,
    }
