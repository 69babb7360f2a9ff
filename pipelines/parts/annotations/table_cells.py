"""Rows, columns and ranks of the words of a table (Herzig et al. 2020, TaPas §2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pipelines.parts.annotations import Annotation
from pipelines.task_families.table_cells import column_ranks, words_of_table
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

LARGEST = 255
"""Larger numbers count as this."""
CHANNEL = Channel("table_cells", size=LARGEST + 1, shape=(4,), edges=(0, 0))


class TableCells(Annotation, name="table_cells"):
    """Row, column, rank and descending rank of each token's cell; all 0 for tokens of the question.

    Rows count from 1 below the header, which is row 0, columns from 1. Ranks are those of numbers in their column, and
    0 where a column is not of numbers; the descending one, of the authors' code, says which number is the largest.
    """

    paper = "arXiv:2004.02349"
    makes = CHANNEL.name

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (CHANNEL,)

    @property
    def columns(self) -> Mapping[str, str]:
        return {"header": "list<string>", "rows": "list<list<string>>"}

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        if text.column != "rows" or text.words is None:
            return {CHANNEL.name: np.zeros((len(text), 4), dtype=np.int64)}
        rows = text.value("rows")
        ranks = column_ranks(rows)
        cells = [
            (one.row, one.column, *(ranks[one.row - 1, one.column - 1] if one.row else (0, 0)))
            for one in words_of_table(text.value("header"), rows)
        ]
        values = np.minimum(np.asarray(cells, dtype=np.int64).reshape(-1, 4), LARGEST)
        return {CHANNEL.name: values[text.words]}
