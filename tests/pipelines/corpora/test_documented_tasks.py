"""Examples of every family from SciPy's documentation: valid, of whole modules, and asking what they say they ask."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import Any

import pytest
from sklearn.datasets import load_digits

from pipelines.corpora.documentation.docstrings import task_rows
from pipelines.corpora.documentation.documented_tasks import documented_examples, examples_of
from pipelines.corpora.documentation.numpydoc import parse_docstring
from pipelines.corpora.settings.dataset import load_settings
from pipelines.corpora.settings.task import DocumentationTask
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily
from tests.steps import ROOT

ASKED = {each.task.family.name for each in load_settings(ROOT).values() if isinstance(each.task, DocumentationTask)}
"""Families with a dataset of documentation in params.yaml."""
TEXT = """\
Solve a thing
on two lines.

A longer description.

Parameters
----------
x, *args : array_like, shape (n,)
    What they are. More words.
mode : {'a', 'b'}, optional

    After a blank line.

Returns
-------
y : float
    Not a parameter.

Notes
-----
The description goes on.
"""


@cache
def rows() -> list[tuple[str, str, str, str]]:
    return list(task_rows(DocumentationTask.model_validate({"documentation": "scipy", "classes": 4})))


@cache
def examples(name: str) -> list[tuple[dict[str, Any], str, str]]:
    return list(examples_of(rows(), TaskFamily.model_validate(name)))


def test_a_documentation_string_is_taken_apart() -> None:
    parts = parse_docstring(TEXT)
    assert parts.summary == "Solve a thing on two lines."
    assert parts.description == "A longer description.\n\nThe description goes on."
    assert [(each.names, each.type, each.description) for each in parts.parameters] == [
        (("x", "*args"), "array_like, shape (n,)", "What they are. More words."),
        (("mode",), "{'a', 'b'}, optional", "After a blank line."),
    ]
    assert (
        parse_docstring("Only a summary.") == parse_docstring("Only a summary.\n")
        and parse_docstring("Only a summary.").description == ""
    )


@pytest.mark.parametrize("name", sorted(ASKED))
def test_every_family_has_valid_examples_in_parts_of_whole_modules(name: str) -> None:
    family = TaskFamily.model_validate(name)
    found = examples(name)
    assert [(where, told) for one, where, _ in found if (told := family.problem(one))] == []
    sizes = Counter(part for _, _, part in found)
    assert sizes["train"] > 100 and sizes["test"] > 100 and sizes["validation"] > 40
    part_of = {where.partition(":")[0]: part for _, where, part in found}
    assert all(part_of[where.partition(":")[0]] == part for _, where, part in found)
    assert list(examples_of(rows(), family)) == found, "the same documentation gives the same examples"


def test_a_family_that_the_documentation_has_nothing_for_is_told() -> None:
    task = DocumentationTask.model_validate({"documentation": "scipy", "classes": 2, "family": "word_analogies"})
    with pytest.raises(
        DataError, match="the documentation holds no examples of word_analogies; set the files of the task"
    ):
        list(documented_examples(task))


def test_the_classes_are_the_rows_of_the_default_task() -> None:
    found = examples("text_classification")
    assert [(one["text"], one["label"], where, part) for one, where, part in found] == rows()


def test_half_of_the_pairs_belong_together_and_the_others_are_of_other_texts() -> None:
    found = [one for one, _, _ in examples("pair_classification")]
    own = {one["text_b"]: one["text_a"] for one in found if one["label"] == "same"}
    assert 0.4 < len(own) / len(found) < 0.6
    assert not [one for one in found if one["label"] == "other" and own.get(one["text_b"]) == one["text_a"]]


def test_similarities_span_the_scale_and_questions_may_have_no_answer() -> None:
    labels = [one["label"] for one, _, _ in examples("pair_regression")]
    assert min(labels) >= 0 and max(labels) == 5 and 0.2 < sum(label > 0 for label in labels) / len(labels) < 0.9
    spans = [one for one, _, _ in examples("span_extraction")]
    unanswered = [one for one in spans if not one["answer_texts"]]
    assert 0.1 < len(unanswered) / len(spans) < 0.4
    for one in unanswered:
        name = one["question"].split()[-1].rstrip("?")
        named = [entry.split(" : ")[0].split(", ") for entry in one["context"].split("\n") if " : " in entry]
        assert name not in [each for names in named for each in names]


def test_choices_are_four_different_summaries_with_the_right_one_anywhere() -> None:
    found = [one for one, _, _ in examples("multiple_choice")]
    assert all(len(set(one["choices"])) == 4 for one in found)
    assert set(Counter(one["answer"] for one in found)) == {0, 1, 2, 3}
    summaries = {where: one["target"] for one, where, _ in examples("text_generation")}
    right = {where: one["choices"][one["answer"]] for one, where, _ in examples("multiple_choice")}
    assert right.items() <= summaries.items()


def test_a_word_has_the_definition_that_its_own_function_gives_among_those_of_others() -> None:
    found = examples("word_senses")
    for one, where, _ in found:
        start = one["word_index"]
        assert one["context"][start - 1 : start + len(one["word"]) + 1] == f"`{one['word']}`"
        assert 2 <= len(set(one["definitions"])) == len(one["definitions"]) <= 4
        assert one["definitions"][one["answer"]] not in one["context"], where
    assert set(Counter(one["answer"] for one, _, _ in found)) == {0, 1, 2, 3}
    senses = {
        part: {one["definitions"][one["answer"]] for one, _, each in found if each == part}
        for part in ("train", "test")
    }
    assert len(senses["test"] - senses["train"]) > 0.8 * len(senses["test"])
    for one, _, part in found:
        assert one["unseen"] == (one["definitions"][one["answer"]] not in senses["train"]), part


def test_the_kinds_of_a_part_are_its_own_and_a_support_shows_them_in_other_lists() -> None:
    found = examples("few_shot_tagging")
    kinds: dict[str, set[str]] = {}
    for one, _, part in found:
        assert one["tokens"] not in one["support_tokens"] and 2 <= len(one["support_tokens"]) <= 6
        shown = {tag[2:] for tags in one["support_tags"] for tag in tags if tag != "O"}
        kinds.setdefault(part, set()).update(shown)
    assert all(len(own) >= 2 for own in kinds.values())
    assert sum(map(len, kinds.values())) == len(set.union(*kinds.values())), "no kind is in two parts"


def test_questions_in_georgian_letters_are_those_of_the_english_ones() -> None:
    english = {where: one for one, where, _ in examples("span_extraction")}
    found = examples("translated_spans")
    assert len(found) == len(english)
    for one, where, _ in found:
        assert one["source_context"] == english[where]["context"]
        assert one["answer_starts"] == english[where]["answer_starts"]
        assert not re.search("[A-Za-z]", one["context"] + one["question"] + "".join(one["answer_texts"]))


def test_answers_about_tables_are_in_the_tables_or_computed_of_them() -> None:
    kinds: Counter[str] = Counter()
    for one, where, _ in examples("table_questions"):
        assert one["header"] == ["name", "type", "optional", "words"] and 3 <= len(one["rows"]) <= 6
        names, types, optional, words = (list(cells) for cells in zip(*one["rows"], strict=True))
        numbers = [int(number) for number in words]
        marked = {"optional": "yes", "required": "no"}
        match one["question"].rstrip("?").split():
            case ["What", "is", "the", "type", "of", name]:
                expected, kind = [types[names.index(name)]], "type"
            case ["How", "many", "words", "describe", "all", "parameters"]:
                expected, kind = [str(sum(numbers))], "sum"
            case ["How", "many", "words", "describe", "a", "parameter", "on", "average"]:
                assert float(one["answers"][0]) == pytest.approx(sum(numbers) / len(numbers), rel=1e-9)
                expected, kind = one["answers"], "average"
            case ["How", "many", "words", "describe", name]:
                expected, kind = [words[names.index(name)]], "number"
            case ["How", "many", "parameters", "are", which]:
                expected, kind = [str(optional.count(marked[which]))], "count"
            case ["Which", "parameters", "are", which]:
                expected = [name for name, mark in zip(names, optional, strict=True) if mark == marked[which]]
                kind = "names"
            case ["Which", "parameter", "has", "the", extreme, "words"]:
                value = max(numbers) if extreme == "most" else min(numbers)
                expected, kind = [name for name, number in zip(names, numbers, strict=True) if number == value], extreme
                assert len(expected) == 1, "the only one"
        assert one["answers"] == expected, (where, one["question"])
        kinds[kind] += 1
    assert len(kinds) == 8 and min(kinds.values()) > 50


def test_answers_about_images_are_those_of_the_digits_and_no_digit_is_in_two_parts() -> None:
    scanned = load_digits()
    value_of = {
        tuple((pixels / 16).tolist()): int(value) for pixels, value in zip(scanned.data, scanned.target, strict=True)
    }
    kinds: Counter[str] = Counter()
    shown: dict[str, set[tuple[float, ...]]] = {}
    for one, where, part in examples("image_questions"):
        placed = sorted(zip(one["boxes"], map(tuple, one["vectors"]), strict=True))
        digits = [value_of[vector] for _, vector in placed]
        assert 4 <= len(digits) <= 6 and one["size"] == [10 * len(digits) - 2, 8]
        assert [box for box, _ in placed] == [[10 * at, 0, 10 * at + 8, 8] for at in range(len(digits))]
        shown.setdefault(part, set()).update(vector for _, vector in placed)
        match one["question"].rstrip("?").split():
            case ["Which", "digit", "is", "the", ordinal, "from", "the", side]:
                row = digits if side == "left" else digits[::-1]
                expected, kind = row[["first", "second", "third", "fourth"].index(ordinal)], "place"
            case ["Which", "digit", "follows", "the", before]:
                assert digits.count(int(before)) == 1, "the only one"
                expected, kind = digits[digits.index(int(before)) + 1], "follows"
            case ["Which", "digit", "is", "the", extreme]:
                expected, kind = (max if extreme == "largest" else min)(digits), extreme
            case ["How", "many", "digits", "are", "larger", "than", limit]:
                expected, kind = sum(digit > int(limit) for digit in digits), "count"
        assert one["label"] == str(expected), (where, one["question"])
        kinds[kind] += 1
    assert len(kinds) == 5 and min(kinds.values()) > 400
    assert sum(map(len, shown.values())) == len(set.union(*shown.values())), "no digit is in two parts"
