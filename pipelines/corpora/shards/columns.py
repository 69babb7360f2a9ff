"""Texts in the declared columns of a named corpus, any of which may overlap an evaluation text.

A row is `text, source, collection` and one value for each declared column, in the order of the declaration.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipelines.corpora.shards.tables import TEXTS, Row

_TEXTS_OF: Mapping[str, Callable[[Any], list[str]]] = {
    "string": lambda value: [value],
    "list<string>": lambda value: [" ".join(value)],
    "list<list<string>>": lambda value: [" ".join(inner) for inner in value],
}
"""Type of a column → function from a value to the texts in it; types without text are missing."""


def texts_of(row: Row, columns: Mapping[str, str]) -> list[str]:
    """The text of a row, and those in its declared `columns` (name → type)."""
    return [row[0], *column_texts(row[len(TEXTS) :], columns)]


def column_texts(values: Sequence[Any], columns: Mapping[str, str]) -> list[str]:
    """The texts in the values of declared `columns`, in the order of these."""
    return [
        text
        for value, kind in zip(values, columns.values(), strict=True)
        if kind in _TEXTS_OF and value is not None
        for text in _TEXTS_OF[kind](value)
    ]
