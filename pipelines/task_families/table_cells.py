"""The words of a table, with the cell of each; what a number in a cell is, and its rank in its column."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_UNITS = "$€£¥% "


class CellWord(NamedTuple):
    """One word of a table."""

    word: str
    row: int
    """0 for the header, from 1 for the rows below it."""
    column: int
    """From 1."""


def words_of_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[CellWord]:
    """The words of all cells, row by row, the header first; an empty cell has none."""
    return [
        CellWord(word, number, column)
        for number, cells in enumerate([header, *rows])
        for column, cell in enumerate(cells, 1)
        for word in cell.split()
    ]


def number_in(cell: str) -> float | None:
    """The number that a cell consists of, which may have a currency, a percent sign and commas; None for others."""
    try:
        # Python reads 1_000 as a number, which no table means by it
        number = float(cell.strip(_UNITS).replace(",", "").replace("_", " "))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def is_numeric(cells: Sequence[str]) -> bool:
    """Whether every cell that is not empty is a number."""
    return all(number_in(cell) is not None for cell in cells if cell.strip())


def column_ranks(rows: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """int64 [R, C, 2]: rank of each number among the distinct ones of its column from 1, ascending and descending.

    0 in a column with a text that is no number, and for an empty cell (Herzig et al. 2020, §2.1).
    """
    ranks = np.zeros((len(rows), len(rows[0]) if rows else 0, 2), dtype=np.int64)
    for column, cells in enumerate(zip(*rows, strict=True)):
        if is_numeric(cells):
            numbers = [number_in(cell) for cell in cells]
            distinct = sorted({number for number in numbers if number is not None})
            for row, number in enumerate(numbers):
                if number is not None:
                    ascending = distinct.index(number) + 1
                    ranks[row, column] = ascending, len(distinct) + 1 - ascending
    return ranks


def nearest_rows(question: str, rows: Sequence[Sequence[str]], count: int) -> list[int]:
    """Indices, ascending, of the `count` rows with the largest share of n-grams of up to three words in common with
    `question`; of equal ones the first (the content snapshot of Yin et al. 2020, §3.1)."""
    if len(rows) <= count:
        return [*range(len(rows))]
    of_question = _ngrams(question.split())
    of_rows = [_ngrams(" ".join(row).split()) for row in rows]
    shares = [len(of_question & of_row) / max(1, len(of_row)) for of_row in of_rows]
    return sorted(sorted(range(len(rows)), key=lambda row: -shares[row])[:count])


def _ngrams(words: Sequence[str]) -> set[tuple[str, ...]]:
    lower = [word.lower() for word in words]
    return {tuple(lower[begin : begin + size]) for size in (1, 2, 3) for begin in range(len(lower) - size + 1)}
