"""Unlabelled examples in JSON, for every task family: the required columns, and the errors for invalid ones."""

from __future__ import annotations

import json
import math

import pytest

from pipelines.errors import DataError
from pipelines.recipe.catalogue import members_of
from pipelines.serving.answering.examples import KINDS, as_json, input_columns, parse_examples
from pipelines.task_families import TaskFamily

QUESTION = {"question": "Who wrote it?", "context": "Ada wrote it."}


def family(name: str) -> TaskFamily:
    return TaskFamily.model_validate(name)


@pytest.mark.parametrize("name", sorted(members_of("task_families")[1]))
def test_every_column_of_every_family_can_be_asked_for(name: str) -> None:
    columns = input_columns(family(name))
    assert columns
    assert set(columns.values()) <= set(KINDS)
    assert not set(columns) & set(family(name).target)


def test_lines_become_examples_without_their_answers() -> None:
    lines = [json.dumps({**QUESTION, "answer_texts": ["Ada"], "id": 7}), "  \n", json.dumps(QUESTION)]
    assert list(parse_examples(family("span_extraction"), lines)) == [QUESTION, QUESTION]


def test_what_a_family_does_not_require_may_be_missing() -> None:
    page = {"tokens": ["Ada"], "boxes": [[1, 2, 3, 4]]}
    lines = [json.dumps(page), json.dumps({**page, "page": None}), json.dumps({**page, "page": [9, 9]})]
    assert [one["page"] for one in parse_examples(family("layout_tagging"), lines)] == [[], [], [9, 9]]
    table = {"question": "Who came first?", "header": ["name"], "rows": [["Ada"]]}
    (one,) = parse_examples(family("table_questions"), [json.dumps(table)])
    assert one == {**table, "table_id": ""}
    (question,) = parse_examples(family("multiple_choice"), ['{"choices": ["a", "b"]}'])
    assert question == {"context": "", "question": "", "choices": ["a", "b"]}


@pytest.mark.parametrize(
    ("name", "line", "said"),
    [
        (
            "span_extraction",
            '{"question": "Who?"}',
            r"line 1: the column 'context' is missing; .*'question' \(a text\)",
        ),
        ("span_extraction", '{"question": "Who?", "context": null}', r"'context' holds null, expected a text"),
        ("span_extraction", '{"question": "", "context": " "}', r"line 1: all texts of the example are empty"),
        ("tagging", '{"tokens": "Ada wrote it"}', r"'tokens' holds \"Ada wrote it\", expected a list of texts"),
        (
            "layout_tagging",
            '{"tokens": ["Ada"]}',
            r"line 1: the column 'boxes' is missing; an example",
        ),
        ("layout_tagging", '{"tokens": ["Ada"], "boxes": [1, 2, 3, 4]}', "expected a list of lists of whole numbers"),
        ("tagging", '{"tokens": ["Ada", 1]}', r"expected a list of texts"),
        ("text_classification", "a text", r"line 1: not JSON"),
        ("text_classification", '["a text"]', r"line 1: expected a JSON object; .*'text' \(a text\)"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(name: str, line: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        list(parse_examples(family(name), [line]))


def test_a_number_that_is_none_is_null() -> None:
    assert [as_json(answer) for answer in (math.nan, 0.5, "a", ["O"])] == [None, 0.5, "a", ["O"]]
