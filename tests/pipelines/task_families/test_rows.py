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
    "label_sets": {"text": "area of a circle", "labels": ["real number", "array"]},
    "pair_classification": {"text_a": "it rains", "text_b": "it is wet", "label": "entailment"},
    "pair_regression": {"text_a": "it rains", "text_b": "it is wet", "label": 3.35},
    "tagging": {
        "tokens": ["Ada", "Lovelace", "of", "London", ";", "中", "国"],
        "tags": ["B-person", "I-person", "O", "B-place", "O", "B-place", "I-place"],
    },
    "few_shot_tagging": {
        "tokens": ["Ada", "of", "London"], "tags": ["B-person", "O", "B-place"],
        "support_tokens": [["Grace", "Hopper"], ["in", "Rome", "and", "Bonn"]],
        "support_tags": [["B-person", "I-person"], ["O", "B-place", "O", "B-place"]],
    },
    "span_extraction": {
        "context": "Ada was born in London.", "question": "Where?", "answer_texts": ["London"], "answer_starts": [16]
    },
    "multiple_choice": {"context": "It rains.", "question": "And?", "choices": ["It is wet.", "It is dry."],
    "answer": 1},
    "text_generation": {"source": "Guten Tag", "target": "good day"},
    "span_pair_classification": {
        "context": "Ada met Grace when she came.", "span1": "Grace", "span1_index": 8, "span2": "she",
        "span2_index": 19,
        "label": "true",
    },
    "word_senses": {
        "context": "They sat on the bank.", "word": "bank", "word_index": 16,
        "definitions": ["sloping land beside water", "a house that keeps money"], "answer": 0, "unseen": 1,
    },
    "minimal_pairs": {
        "sentences": ["They walks.", "They walk."], "answer": 1, "phenomenon": "agreement", "paradigm": "plural"
    },
    "dependency_parsing": {
        "sentence": "Ada wrote it.", "words": ["Ada", "wrote", "it", "."], "heads": [2, 0, 2, 2],
        "relations": ["nsubj:outer", "root", "obj", "punct"],
    },
    "link_prediction": {
        "head": "Q7259", "relation": "P19", "tail": "Q84", "head_name": "Ada Lovelace",
        "head_description": "mathematician",
        "relation_name": "place of birth", "tail_name": "London", "tail_description": "", "other_heads": "Q1\nQ2",
        "other_tails": "",
    },
    "table_questions": {
        "question": "Who came first?", "table_id": "t1", "header": ["Name", "Place"], "rows": [["Ada", "1"], ["Grace",
        "2"]],
        "answers": ["Ada"],
    },
    "layout_tagging": {
        "tokens": ["Full", "name:", "Ada"], "boxes": [[0, 0, 9, 9], [10, 0, 30, 9], [31, 0, 60, 9]],
        "tags": ["B-question", "I-question", "B-answer"], "page": [100, 50],
    },
    "word_analogies": {"relation": "capital", "a": "Paris", "b": "France", "c": "Rome", "d": "Italy"},
}  # fmt: skip
TEXT = {
    "text_classification": "text: a fine film label:",
    "label_sets": "text: area of a circle labels:",
    "pair_classification": "first: it rains second: it is wet label:",
    "pair_regression": "first: it rains second: it is wet similarity:",
    "tagging": "text: Ada Lovelace of London ; 中国 entities:",
    "few_shot_tagging": "example: Grace Hopper entities: person: Grace Hopper example: in Rome and Bonn entities: "
    "place: Rome; place: Bonn text: Ada of London entities:",
    "span_extraction": "question: Where? context: Ada was born in London. answer:",
    "multiple_choice": "question: And? choice1: It is wet. choice2: It is dry. context: It rains. answer:",
    "text_generation": "text: Guten Tag output:",
    "span_pair_classification": "text: Ada met *Grace* when *she* came. first: Grace second: she label:",
    "word_senses": "word: bank definition1: sloping land beside water definition2: a house that keeps money "
    "context: They sat on the *bank*. answer:",
    "minimal_pairs": "sentence1: They walks. sentence2: They walk. acceptable:",
    "dependency_parsing": "words: Ada wrote it . tree:",
    "link_prediction": "head: Ada Lovelace, mathematician relation: place of birth tail:",
    "table_questions": "question: Who came first? table: Name | Place row 1: Ada | 1 row 2: Grace | 2 answer:",
    "layout_tagging": "text: Full name: Ada entities:",
    "word_analogies": "Paris : France :: Rome :",
}
NOTES = {"phenomenon", "paradigm", "relation", "page", "table_id", "head", "head_description"}
"""Columns that say something of an example and are no words of it."""
WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("text_classification", {"text": "  "}, "the column 'text' is empty"),
    ("text_classification", {"label": None}, "the column 'label' is empty"),
    ("label_sets", {"text": " "}, "the column 'text' is empty"),
    ("label_sets", {"labels": ["array", ""]}, "the column 'labels' holds an empty label"),
    ("label_sets", {"labels": ["array", "array"]}, "the column 'labels' holds 'array' twice"),
    ("pair_classification", {"text_b": None}, "the column 'text_b' is empty"),
    ("pair_regression", {"text_a": ""}, "the column 'text_a' is empty"),
    ("pair_regression", {"label": math.nan}, "'label' holds nan, expected a finite number"),
    ("tagging", {"tokens": []}, "the column 'tokens' is empty"),
    ("tagging", {"tags": ["O"]}, "'tags' holds 1 tags for 7 tokens"),
    ("tagging", {"tags": ["O", "I-person", *"OOOOO"]}, "'I-person' after 'O', number 1: in IOB2 it begins with B-"),
    ("tagging", {"tags": ["B-x", "I-y", *"OOOOO"]}, "'I-y' after 'B-x'"),
    ("tagging", {"tags": ["E-x", *"OOOOOO"]}, "expected O, B-… or I-…"),
    ("few_shot_tagging", {"tags": ["O"]}, "'tags' holds 1 tags for 3 tokens"),
    ("few_shot_tagging", {"support_tokens": []}, "the column 'support_tokens' is empty"),
    ("few_shot_tagging", {"support_tags": [["O", "O"]]}, "'support_tags' holds 1 sentences, 'support_tokens' 2"),
    ("few_shot_tagging", {"support_tags": [["O"], list("OOOO")]}, "support sentence 0: the column 'tags' holds 1 tags"),
    ("few_shot_tagging", {"tags": ["B-thing", "O", "O"]}, "holds the type 'thing', which no support sentence has"),
    ("span_extraction", {"question": ""}, "the column 'question' is empty"),
    ("span_extraction", {"answer_starts": [15]}, "'London' is not at character 15 of 'context'"),
    ("span_extraction", {"answer_starts": []}, "'answer_starts' holds 0 offsets for 1 answers"),
    ("span_extraction", {"answer_texts": [""]}, "holds an empty answer"),
    ("multiple_choice", {"answer": 2}, "'answer' holds 2, expected an index from 0 to 1"),
    ("multiple_choice", {"choices": ["one"]}, "'choices' holds 1, expected two or more"),
    ("multiple_choice", {"choices": ["one", " "]}, "an empty choice"),
    ("multiple_choice", {"question": "", "context": None}, "are both empty"),
    ("text_generation", {"target": ""}, "the column 'target' is empty"),
    ("span_pair_classification", {"span1": ""}, "the column 'span1' is empty"),
    ("span_pair_classification", {"span2_index": 20}, "'span2' holds 'she', which is not at character 20"),
    ("span_pair_classification", {"span1_index": -1}, "'span1' holds 'Grace', which is not at character -1"),
    ("word_senses", {"context": ""}, "the column 'context' is empty"),
    ("word_senses", {"word_index": 15}, "'word' holds 'bank', which is not at character 15"),
    ("word_senses", {"definitions": ["one"]}, "'definitions' holds 1, expected two or more"),
    ("word_senses", {"definitions": ["one", " "]}, "an empty definition"),
    ("word_senses", {"definitions": ["one", "one"]}, "holds a definition twice"),
    ("word_senses", {"answer": 2}, "'answer' holds 2, expected an index from 0 to 1"),
    ("minimal_pairs", {"sentences": ["They walk."] * 2}, "holds 'They walk.' twice"),
    ("minimal_pairs", {"sentences": ["They walk.", " "]}, "an empty sentence"),
    ("minimal_pairs", {"answer": 2}, "'answer' holds 2, expected 0 or 1"),
    ("dependency_parsing", {"words": []}, "the column 'words' is empty"),
    ("dependency_parsing", {"heads": [2, 0, 2]}, "the column 'heads' holds 3 for 4 words"),
    ("dependency_parsing", {"heads": [2, 0, 2, 5]}, "holds 5 for word 4, expected 0 (the root) to 4"),
    ("dependency_parsing", {"heads": [2, 0, 2, -1]}, "holds -1 for word 4"),
    ("dependency_parsing", {"heads": [2, 3, 2, 2]}, "has 0 roots"),
    ("dependency_parsing", {"heads": [0, 0, 2, 2]}, "has 2 roots (words whose head is 0): words 1, 2; a tree has one"),
    ("dependency_parsing", {"heads": [2, 0, 4, 3]}, "contains a cycle: word 3 → 4 → 3"),
    ("dependency_parsing", {"heads": [1, 0, 2, 2]}, "contains a cycle: word 1 → 1"),
    ("dependency_parsing", {"relations": ["nsubj", "root", "", "punct"]}, "'relations' holds nothing for word 3"),
    ("link_prediction", {"tail": ""}, "the column 'tail' is empty"),
    ("link_prediction", {"tail_name": ""}, "the column 'tail' holds 'Q84', which has no name in 'entities'"),
    ("link_prediction", {"relation_name": ""}, "the column 'relation' holds 'P19', which has no name in 'relations'"),
    ("table_questions", {"header": []}, "'table_id' holds 't1', which is not in 'tables'"),
    ("table_questions", {"rows": [["Ada", "1"], ["Grace"]]}, "the column 'rows' holds 1 cells in row 2, the header 2"),
    ("table_questions", {"answers": []}, "the column 'answers' holds [], expected at least one text"),
    ("layout_tagging", {"tags": ["B-question"]}, "'tags' holds 1 tags for 3 tokens"),
    ("layout_tagging", {"boxes": [[0, 0, 9, 9]]}, "'boxes' holds 1 boxes for 3 tokens"),
    ("layout_tagging", {"boxes": [[0, 0, 9]] * 3}, "holds [0, 0, 9], number 0: expected x0, y0, x1, y1"),
    ("layout_tagging", {"boxes": [[9, 0, 8, 9]] * 3}, "holds [9, 0, 8, 9], number 0: x1 < x0"),
    ("layout_tagging", {"boxes": [[0, 9, 9, 8]] * 3}, "number 0: y1 < y0"),
    ("layout_tagging", {"boxes": [[-1, 0, 9, 9]] * 3, "page": []}, "holds [-1, 0, 9, 9], number 0, outside the page"),
    ("layout_tagging", {"page": [50, 50]}, "holds [31, 0, 60, 9], number 2, outside the page of [50, 50]"),
    ("layout_tagging", {"page": [50]}, "the column 'page' holds [50], expected its width and height"),
    ("word_analogies", {"d": " "}, "the column 'd' is empty"),
]


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


def test_entities_of_types_that_the_support_has_are_read() -> None:
    few, row = family("few_shot_tagging"), ROWS["few_shot_tagging"]
    assert few.labels([row]) == []
    assert few.read_answer("person: Ada; place: London", row, []) == row["tags"]


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


def test_a_definition_is_named_by_its_number_or_its_words() -> None:
    senses, row = family("word_senses"), ROWS["word_senses"]
    texts = ("definition2", "a house  that keeps money", "sloping land beside water", "definition3", "choice1", "")
    assert [senses.read_answer(text, row, []) for text in texts] == [1, 1, 0, -1, -1, -1]


def test_a_sense_is_seen_where_a_training_example_has_its_definition() -> None:
    senses, row = family("word_senses"), ROWS["word_senses"]
    other = {**row, "word": "shore", "context": "shore", "word_index": 0, "answer": 1}
    parts = {"train": [dict(row)], "validation": [dict(other)], "test": [dict(row), {**row, "answer": 1}]}
    senses.complete(parts)
    assert {part: [one["unseen"] for one in rows] for part, rows in parts.items()} == {
        "train": [0],
        "validation": [1],
        "test": [0, 1],
    }


def test_a_word_follows_its_context_through_repairs() -> None:
    senses, row = family("word_senses"), ROWS["word_senses"]
    context = "A  bank  is on the bank."
    spread = {**row, "context": context, "word_index": context.rindex("bank")}
    repaired = senses.repair_texts(spread, lambda text: " ".join(text.split()))
    assert senses.problem(repaired) is None and repaired["word_index"] == 17


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
