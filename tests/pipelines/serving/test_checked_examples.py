"""Examples from outside: values that would fail in a tokenizer or an array are refused with their line and column."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipelines.errors import DataError
from pipelines.serving.answering.checked_examples import checked_example, checked_examples, checked_text
from pipelines.task_families import TaskFamily

BOXES = "a list of lists of whole numbers"


def family(name: str) -> TaskFamily:
    return TaskFamily.model_validate(name)


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("text_classification", {"text": "\ud83d"}, r"'text' holds \"\\ud83d\": half of a surrogate pair"),
        ("tagging", {"tokens": ["Ada", "\udcff"]}, r"'tokens' holds .*half of a surrogate pair"),
        ("text_classification", {"text": b"bytes"}, "'text' holds b'bytes', expected a text"),
        ("layout_tagging", {"tokens": ["Ada"], "boxes": [["1", 2, 3, 4]]}, f"'boxes' holds .*, expected {BOXES}"),
        ("layout_tagging", {"tokens": ["Ada"], "boxes": [[True, 2, 3, 4]]}, f"'boxes' holds .*, expected {BOXES}"),
        ("layout_tagging", {"tokens": ["Ada"], "boxes": [[2**63, 2, 3, 4]]}, f"'boxes' holds .*, expected {BOXES}"),
        ("table_questions", {"question": "Who?", "header": ["name"], "rows": [[1]]}, "expected a list of lists of t"),
        ("tagging", "Ada wrote it", "expected a JSON object"),
        ("span_extraction", {"question": "Who?"}, "the column 'context' is missing"),
    ],
)
def test_a_value_that_is_not_of_its_type_is_one_sentence(name: str, given: Any, sentence: str) -> None:
    with pytest.raises(DataError, match=f"example 7: .*{sentence}") as refused:
        checked_example(family(name), given, "example 7")
    str(refused.value).encode()


def test_what_fits_is_the_example() -> None:
    page = {"tokens": ["Ada", "🙂"], "boxes": [[1, 2, 3, 4], [5, 6, 7, 8]]}
    assert checked_example(family("layout_tagging"), page, "example 1") == {**page, "page": []}
    lines = [json.dumps({"text": "🙂"}), " ", json.dumps({"text": "b", "label": 1})]
    assert list(checked_examples(family("text_classification"), lines)) == [{"text": "🙂"}, {"text": "b"}]
    assert checked_text("🙂", "input 1") == "🙂"


@pytest.mark.parametrize("line", ["[" * 100_000, '{"text": ' * 100_000, "{"], ids=["lists", "objects", "cut"])
def test_a_line_that_is_no_json_is_one_sentence(line: str) -> None:
    with pytest.raises(DataError, match="line 2: not JSON"):
        list(checked_examples(family("text_classification"), ["", line]))
    with pytest.raises(DataError, match="input 1: .*half of a surrogate pair"):
        checked_text("\udcff", "input 1")
