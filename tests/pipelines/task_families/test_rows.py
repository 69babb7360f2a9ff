"""What a valid row is, what its text and answers are, and that answers survive being written and read."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from pipelines.components import discover
from pipelines.task_families import TaskFamily
from tests.pipelines.task_families.rows import NOTES, ROWS, TEXT, WRONG


def family(name: str) -> TaskFamily:
    return TaskFamily.model_validate(name)


def test_every_family_is_tried_here() -> None:
    discover("pipelines.task_families")
    assert set(TaskFamily.members) == set(ROWS)


@pytest.mark.parametrize("name", ROWS)
def test_a_row_s_columns_its_text_and_its_answer(name: str) -> None:
    one, row = family(name), ROWS[name]
    assert set(one.columns) == set(row) and set(one.target) < set(row)
    types = {"string": pa.string(), "double": pa.float64(), "int64": pa.int64()}
    types |= {f"list<{kind}>": pa.list_(inside) for kind, inside in types.items()}
    types |= {f"list<{kind}>": pa.list_(inside) for kind, inside in types.items()}
    schema = pa.schema([(key, types[kind]) for key, kind in one.columns.items()])
    assert pa.Table.from_pylist([row], schema).to_pylist() == [row]
    assert one.problem(row) is None
    labels = one.labels([row])
    assert one.source(row, labels) == TEXT[name]
    assert one.source(row, labels).endswith(":")
    words = one.text(row)
    assert all(
        word in words
        for key in set(row) - set(one.target) - NOTES
        for word in str(row[key]).split()[:1]
        if word.isalpha()
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
    assert told.reason and "'" not in told.reason and told.value_count >= 1


def test_a_mistake_has_one_reason_whatever_the_values() -> None:
    tagging, row = family("tagging"), ROWS["tagging"]
    found = [tagging.problem(row | {"tags": tags}) for tags in (["I-x", *"OOOOOO"], ["B-x", "I-y", "I-z", *"OOOO"])]
    assert [(one.reason, one.value_count) for one in found if one is not None] == [
        ("tags begins an entity with I-", 1),
        ("tags begins an entity with I-", 2),
    ]


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


def test_written_label_sets_keep_what_is_known_and_in_their_order() -> None:
    sets, row = family("label_sets"), ROWS["label_sets"]
    known = ["array", "real number", "text"]
    assert sets.answer_text(row) == "array; real number"
    assert list(sets.read_answer("Real  number; Array; circle", row, known)) == ["real number", "array"]
    assert sets.answer_text(row | {"labels": []}) == "none" and sets.read_answer("none", row, known) == {}
    assert sets.labels([row, {"text": "b", "labels": ["text"]}, {"text": "c", "labels": []}]) == known


def test_a_relation_counts_without_its_subtype_unless_it_is_asked_for() -> None:
    row = ROWS["dependency_parsing"]
    assert family("dependency_parsing").labels([row]) == ["nsubj", "obj", "punct", "root"]
    full = TaskFamily.model_validate({"name": "dependency_parsing", "subtypes": True})
    assert full.labels([row])[0] == "nsubj:outer" and full.answer_text(row) == "2:nsubj:outer 0:root 2:obj 2:punct"
    assert full.read_answer(full.answer_text(row), row, []) == full.gold(row)
    assert full.read_answer("2:nsubj and 2:obj 2:punct 9:more", row, []) == [
        (2, "nsubj"),
        (-1, ""),
        (2, "obj"),
        (2, "punct"),
    ]


def test_facts_know_of_the_other_answers_and_training_does_not() -> None:
    links = family("link_prediction")
    blank = {"head_description": "", "tail_description": "", "other_heads": "", "other_tails": ""}
    names = {"a": "A. Smith", "b": "a smith", "c": "Rome", "d": "Bonn"}

    def fact(head: str, tail: str) -> dict[str, Any]:
        ids = {"head": head, "relation": "in", "tail": tail, "relation_name": "lives in"}
        return {**blank, **ids, "head_name": names[head], "tail_name": names[tail]}

    parts = {"train": [fact("a", "c"), fact("b", "c")], "validation": [fact("a", "d")], "test": [fact("b", "d")]}
    links.complete(parts)
    assert [row["head_name"] for row in parts["train"]] == ["A. Smith (a)", "a smith (b)"], "their words are the same"
    assert parts["train"][0]["tail_name"] == "Rome"
    assert all(row["other_heads"] == row["other_tails"] == "" for row in parts["train"])
    assert links.gold(parts["test"][0]) == {"head": ("b", frozenset("a")), "tail": ("d", frozenset("c"))}
    assert links.labels(parts["train"]) == ["in"]
    asked = {name: value for name, value in parts["test"][0].items() if name not in links.target}
    assert links.text(asked) == "a smith (b)\nlives in", "of an example whose answer is not known"


def test_answers_of_tables_are_cells_where_that_is_asked_for() -> None:
    cells = TaskFamily.model_validate({"name": "table_questions", "answers_from": "cells"})
    assert cells.problem(ROWS["table_questions"]) is None
    told = cells.problem(ROWS["table_questions"] | {"answers": ["2 women"]})
    assert told == "the column 'answers' holds '2 women', which is not a cell of the table 't1'"
    assert family("table_questions").problem(ROWS["table_questions"] | {"answers": ["2 women"]}) is None


def test_a_span_is_found_again_in_the_repaired_text() -> None:
    spans, row = family("span_pair_classification"), ROWS["span_pair_classification"]
    wide = row | {"context": f"  {row['context']}", "span1_index": 10, "span2_index": 21}
    assert spans.problem(wide) is None and spans.repair_texts(wide, str.strip) == row
