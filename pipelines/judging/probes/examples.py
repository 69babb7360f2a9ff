"""The labelled examples that probes read: words or texts, and their labels, independent of the task family's column
names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.corpora.shards.example_table import ExampleTable
from pipelines.errors import DataError
from pipelines.task_families import Row, TaskFamily
from pipelines.task_families.writing_systems import has_han

WORDS = ("tokens", "words")
"""Columns that hold the words of a sentence."""


class Examples:
    """The tables of a stage, each in a random order that depends on the seed only: fewer examples are a prefix
    of more."""

    def __init__(self, tables: Mapping[str, Path], family: TaskFamily, seed: int, most: int) -> None:
        self._tables, self.family, self._seed, self.most = tables, family, seed, most
        self._rows: dict[str, list[Row]] = {}

    def rows(self, table: str) -> list[Row]:
        """Up to `most` examples of a table. Raises DataError if it is empty."""
        if table not in self._rows:
            rows = ExampleTable(self._tables[table])
            if not rows:
                raise DataError(f"{self._tables[table]}: the table is empty; a probe needs at least one example")
            order = np.random.default_rng([self._seed, 7]).permutation(len(rows))[: self.most]
            self._rows[table] = rows.take(order.tolist())
        return self._rows[table]

    @property
    def word_level(self) -> bool:
        """Whether labels belong to words rather than to texts."""
        return word_column(self.family) is not None

    def texts(self, table: str) -> list[str]:
        """All texts of a table of plain text, in table order."""
        from pyarrow import parquet

        return [str(text) for text in parquet.read_table(self._tables[table], columns=["text"])["text"].to_pylist()]


def word_column(family: TaskFamily) -> str | None:
    """The column that holds the words of an example; None if an example is a text."""
    return next((name for name in WORDS if name in family.columns), None)


def words_of(family: TaskFamily, row: Row) -> list[str]:
    """The words of an example, or its text as a single element."""
    column = word_column(family)
    return [family.text(row)] if column is None else list(row[column])


def labels_of(family: TaskFamily, row: Row) -> list[str]:
    """The label of each of `words_of`: a tag, the relation to the head, or the class of the text."""
    gold: Any = family.gold(row)
    if word_column(family) is None:
        return [str(gold)]
    return [one if isinstance(one, str) else str(one[-1]) for one in gold]


def types_of(family: TaskFamily, row: Row) -> list[str]:
    """The word type of each of `words_of`, for which a control task draws a label.

    For a text this is its first word, or its first character in scripts without spaces.
    """
    words = words_of(family, row)
    if word_column(family) is not None:
        return words
    first = words[0].split()[:1] or [""]
    return [first[0][:1] if has_han(first[0][:1]) else first[0]]


def flat(rows: Sequence[Sequence[str]]) -> list[str]:
    """The values of all rows, concatenated."""
    return [value for row in rows for value in row]
