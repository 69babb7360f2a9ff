"""Examples from outside, checked down to their last value: what a tokenizer or an array cannot hold is one sentence.

    checked_example(family, {"question": "Who wrote it?", "context": "Ada wrote it."}, "example 1")

`pipelines.serving.answering.examples` checks columns and the first level of lists; this adds the values inside lists,
the range of numbers, and halves of surrogate pairs, which JSON (`"\\ud83d"`) and arguments that are not UTF-8 have.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pipelines.errors import DataError
from pipelines.serving.answering.examples import KINDS, input_columns, parse_example
from pipelines.task_families import Row, TaskFamily

LIST = "list<"
LONGEST_SHOWN = 60
NOT_UTF8 = "half of a surrogate pair, which no text in UTF-8 has"


def checked_example(family: TaskFamily, given: Any, where: str) -> Row:
    """`given` as an example of `family`, as `parse_example` returns it. Raises DataError, with `where` and the column,
    for every value that is not of the column's type."""
    if isinstance(given, Mapping):
        for name, kind in input_columns(family).items():
            value = given.get(name)
            if name not in given or (value is None and name in family.optional):
                continue
            if not _fits(kind, value):
                raise DataError(f"{where}: the column {name!r} holds {_shown(value)}, expected {KINDS[kind][0]}")
            if not _is_utf8(value):
                raise DataError(f"{where}: the column {name!r} holds {_shown(value)}: {NOT_UTF8}")
    return parse_example(family, given, where)


def checked_examples(family: TaskFamily, lines: Iterable[str], file: Path | None = None) -> Iterator[Row]:
    """One example per non-blank line of JSON. Raises DataError with the line number, and the `file` if it is given."""
    for number, line in enumerate(lines, 1):
        if line.strip():
            where = f"line {number}" if file is None else f"{file}:{number}"
            try:
                given = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{where}: not JSON ({error}); write one object per line") from None
            yield checked_example(family, given, where)


def checked_text(text: str, where: str) -> str:
    """`text` itself. Raises DataError, with `where`, for one that UTF-8 cannot write."""
    if not _is_utf8(text):
        raise DataError(f"{where}: {_shown(text)}: {NOT_UTF8}")
    return text


def _fits(kind: str, value: Any) -> bool:
    """Whether `value` is of the column type `kind`, at every depth."""
    if kind.startswith(LIST):
        return isinstance(value, list) and all(_fits(kind.removeprefix(LIST)[:-1], one) for one in value)
    if kind == "string":
        return isinstance(value, str)
    if isinstance(value, bool):
        return False
    if kind == "int64":
        return isinstance(value, int) and -(2**63) <= value < 2**63
    return isinstance(value, (int, float)) and abs(value) <= sys.float_info.max  # false for NaN, too


def _is_utf8(value: Any) -> bool:
    """Whether every text in a value that fits its type can be written in UTF-8."""
    if isinstance(value, list):
        return all(map(_is_utf8, value))
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return False
    return True


def _shown(value: Any) -> str:
    """`value` as JSON where it is one, short, and so that it can be printed."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):
        text = repr(value)
    except RecursionError:
        text = "lists without end"
    cut = text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 1]}…"
    return cut.encode("utf-8", "backslashreplace").decode()
