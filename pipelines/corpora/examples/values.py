"""Read values of each field type from files: typed ones, as in jsonl and parquet, or text, as in csv and tsv.

The message of a ValueError is what was expected.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

LARGEST = 3.4e38
"""Largest number in a vector, which is read as float32."""
_WHOLE = re.compile(r"([-+]?\d+)\.0+")
_DECIMAL = re.compile(r"[-+]?\d*\.\d+(?:[eE][-+]?\d+)?")


def class_label(value: Any, untyped: bool) -> str | None:
    """A class, which a file may hold as text or as a whole number; None for an empty value."""
    if untyped and isinstance(value, str):
        text = value.strip()
        if whole := _WHOLE.fullmatch(text):
            return whole[1]
        if _DECIMAL.fullmatch(text):
            value = float(text)
    if isinstance(value, list):
        raise ValueError("text; the family for several labels of a text is label_sets")
    if isinstance(value, float) and not value.is_integer():
        raise ValueError("a class: a text or a whole number; the family for scores is pair_regression")
    return answer_text(value)


def answer_text(value: Any) -> str | None:
    """A correct answer as text, which a file may hold as a number; None for an empty value."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(int(value) if isinstance(value, float) and value.is_integer() else value)
    return text(value).strip() or None


def text(value: Any) -> str:
    """Text; empty for null."""
    if value is not None and not isinstance(value, str):
        raise ValueError("text")
    return value or ""


def number(value: Any) -> float:
    """A number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("a number")
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise ValueError("a number") from None


def index(value: Any) -> int:
    """A whole number."""
    if isinstance(value, str) and re.fullmatch(r"\s*-?[0-9]{1,18}\s*", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or value % 1 or not abs(value) < 2**63:
        raise ValueError("an index, counted from 0")
    return int(value)


def _listed(value: Any, kind: type, meaning: str, deep: bool) -> list[Any]:
    expected = f"a list of {'lists of ' * deep}{meaning}"
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError(f"{expected}, as JSON") from None
    if not isinstance(value, list):
        raise ValueError(expected)
    for inner in value if deep else [value]:
        if not isinstance(inner, list) or any(not isinstance(item, kind) or isinstance(item, bool) for item in inner):
            raise ValueError(expected)
    return value


def _vectors(value: Any) -> list[list[float]]:
    """A vector for each word or region; an empty list for one that has none."""
    expected = "a list of vectors: lists of finite numbers, each empty or as long as the others"
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError(f"{expected}, as JSON") from None
    if not isinstance(value, list) or any(not isinstance(one, list) for one in value):
        raise ValueError(expected)
    numbers = [item for one in value for item in one]
    if any(isinstance(item, bool) or not isinstance(item, int | float) for item in numbers):
        raise ValueError(expected)
    if len({len(one) for one in value if one}) > 1 or not all(abs(item) <= LARGEST for item in numbers):
        raise ValueError(expected)
    return [[float(item) for item in one] for one in value]


READ: dict[str, Callable[[Any], Any]] = {
    "string": text,
    "double": number,
    "int64": index,
    "list<string>": lambda value: _listed(value, str, "texts", False),
    "list<int64>": lambda value: _listed(value, int, "whole numbers", False),
    "list<list<string>>": lambda value: _listed(value, str, "texts", True),
    "list<list<int64>>": lambda value: _listed(value, int, "whole numbers", True),
    "list<list<double>>": _vectors,
}
"""Type of a field → function that reads it."""

EMPTY: dict[str, Any] = {"string": "", **{kind: [] for kind in READ if kind.startswith("list")}}
"""Type of a field → default for a missing one."""
