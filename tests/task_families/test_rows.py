"""What a valid row is, what its text and answers are, and that answers survive being written and read."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from pipelines.components import discover
from pipelines.task_families import TaskFamily

ROWS: dict[str, dict[str, Any]] = {
    "text_classification": {"text": "a fine film", "label": "positive"},
    "pair_classification": {"text_a": "it rains", "text_b": "it is wet", "label": "entailment"},
    "pair_regression": {"text_a": "it rains", "text_b": "it is wet", "label": 3.35},
    "tagging": {
        "tokens": ["Ada", "Lovelace", "of", "London", ";", "中", "国"],
        "tags": ["B-person", "I-person", "O", "B-place", "O", "B-place", "I-place"],
    },
    "span_extraction": {
        "context": "Ada was born in London.", "question": "Where?", "answer_texts": ["London"], "answer_starts": [16]
    },
    "multiple_choice": {"context": "It rains.", "question": "And?", "choices": ["It is wet.", "It is dry."], "answer": 1},
    "text_generation": {"source": "Guten Tag", "target": "good day"},
}  # fmt: skip
TEXT = {
    "text_classification": "text: a fine film label:",
    "pair_classification": "first: it rains second: it is wet label:",
    "pair_regression": "first: it rains second: it is wet similarity:",
    "tagging": "text: Ada Lovelace of London ; 中国 entities:",
    "span_extraction": "question: Where? context: Ada was born in London. answer:",
    "multiple_choice": "question: And? choice1: It is wet. choice2: It is dry. context: It rains. answer:",
    "text_generation": "text: Guten Tag output:",
}
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("text_classification", {"text": "  "}, "the column 'text' is empty"),
    ("text_classification", {"label": None}, "the column 'label' is empty"),
    ("pair_classification", {"text_b": None}, "the column 'text_b' is empty"),
    ("pair_regression", {"text_a": ""}, "the column 'text_a' is empty"),
    ("pair_regression", {"label": math.nan}, "'label' holds nan, expected a finite number"),
    ("tagging", {"tokens": []}, "the column 'tokens' is empty"),
    ("tagging", {"tags": ["O"]}, "'tags' holds 1 tags for 7 tokens"),
    ("tagging", {"tags": ["O", "I-person", *"OOOOO"]}, "'I-person' after 'O', number 1: in IOB2 it begins with B-"),
    ("tagging", {"tags": ["B-x", "I-y", *"OOOOO"]}, "'I-y' after 'B-x'"),
    ("tagging", {"tags": ["E-x", *"OOOOOO"]}, "expected O, B-… or I-…"),
    ("span_extraction", {"question": ""}, "the column 'question' is empty"),
    ("span_extraction", {"answer_starts": [15]}, "'London' does not stand at character 15 of 'context'"),
    ("span_extraction", {"answer_starts": []}, "'answer_starts' holds 0 places for 1 answers"),
    ("span_extraction", {"answer_texts": [""]}, "holds an empty answer"),
    ("multiple_choice", {"answer": 2}, "'answer' holds 2, expected an index from 0 to 1"),
    ("multiple_choice", {"choices": ["one"]}, "'choices' holds 1, expected two or more"),
    ("multiple_choice", {"choices": ["one", " "]}, "an empty choice"),
    ("multiple_choice", {"question": "", "context": None}, "are both empty"),
    ("text_generation", {"target": ""}, "the column 'target' is empty"),
]


def family(name: str) -> TaskFamily:
    return TaskFamily.model_validate(name)


def test_the_seven_families_are_there() -> None:
    discover("pipelines.task_families")
    assert set(TaskFamily.members) == set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_s_columns_its_text_and_its_answer(name: str) -> None:
    one, row = family(name), ROWS[name]
    assert set(one.columns) == set(row) and set(one.target) < set(row)
    types = {"string": pa.string(), "double": pa.float64(), "int64": pa.int64()}
    types |= {"list<string>": pa.list_(pa.string()), "list<int64>": pa.list_(pa.int64())}
    assert (
        pa.Table.from_pylist([row], pa.schema([(key, types[kind]) for key, kind in one.columns.items()])).num_rows == 1
    )
    assert one.problem(row) is None
    labels = one.labels([row])
    assert one.source(row, labels) == TEXT[name]
    assert one.source(row, labels).endswith(":")
    words = one.text(row)
    assert all(
        word in words for key in set(row) - set(one.target) for word in str(row[key]).split()[:1] if word.isalpha()
    )


@pytest.mark.parametrize("name", ROWS)
def test_a_written_answer_is_read_back_as_the_right_one(name: str) -> None:
    one, row = family(name), ROWS[name]
    labels = one.labels([row])
    given = one.read_answer(one.answer_text(row), row, labels)
    perfect = one.scores(one.statistics([one.gold(row)] * 2, [given] * 2, labels))
    if name == "pair_regression":
        assert given == pytest.approx(3.4), "to the nearest 0.2"
    else:
        assert perfect[one.metrics[0]] == 1.0
    nonsense = one.read_answer("; : choice9 none\n", row, labels)
    assert one.statistics([one.gold(row)], [nonsense], labels).shape[0] == 1, "no answer is an error"


@pytest.mark.parametrize(("name", "change", "says"), WRONG)
def test_a_wrong_row_is_told_by_its_column(name: str, change: dict[str, Any], says: str) -> None:
    told = family(name).problem(ROWS[name] | change)
    assert told is not None and says in told


def test_tags_are_a_closed_set_in_a_fixed_order() -> None:
    rows = [{"tokens": ["a", "b"], "tags": ["B-place", "O"]}, {"tokens": ["c", "d"], "tags": ["B-person", "I-person"]}]
    assert family("tagging").labels(rows) == ["O", "B-person", "I-person", "B-place", "I-place"]


def test_entities_are_read_in_their_order_and_unknown_ones_passed_over() -> None:
    tagging = family("tagging")
    row = {"tokens": ["May", "met", "May", "in", "May", "!"], "tags": ["B-p", "O", "B-p", "O", "B-t", "O"]}
    labels = tagging.labels([row])
    assert tagging.answer_text(row) == "p: May; p: May; t: May"
    assert tagging.read_answer("p: May; p: May; t: May", row, labels) == row["tags"]
    assert tagging.read_answer("t: in May", row, labels) == ["O", "O", "O", "B-t", "I-t", "O"]
    assert tagging.read_answer("q: May; p: June; t:", row, labels) == ["O"] * 6
    assert tagging.answer_text({"tokens": ["so"], "tags": ["O"]}) == "none"
    assert tagging.read_answer("none", row, labels) == ["O"] * 6


def test_questions_without_answers() -> None:
    spans = family("span_extraction")
    row = ROWS["span_extraction"] | {"answer_texts": [], "answer_starts": []}
    assert spans.problem(row) is None and spans.gold(row) == []
    assert spans.answer_text(row) == "unanswerable" and spans.read_answer("Unanswerable", row, []) == ""


def test_a_choice_is_named_by_its_number_or_its_words() -> None:
    choices, row = family("multiple_choice"), ROWS["multiple_choice"]
    read = [
        choices.read_answer(text, row, []) for text in ("choice1", " choice 2", "It is  dry.", "choice3", "choice0", "")
    ]
    assert read == [0, 1, 1, -1, -1, -1]


def test_a_label_is_read_whatever_its_case_and_a_number_only_when_it_is_one() -> None:
    assert family("text_classification").read_answer(" Positive ", {}, ["positive", "negative"]) == "positive"
    numbers = [family("pair_regression").read_answer(text, {}, []) for text in ("2.6", "-1", "many", "nan", "1e9")]
    assert numbers[:2] == [2.6, -1.0] and all(map(math.isnan, numbers[2:]))
