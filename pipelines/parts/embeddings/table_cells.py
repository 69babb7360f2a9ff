"""Embeddings of the place of a word in a table (Herzig et al. 2020, TaPas §2.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pipelines.parts.embeddings import Embedding

if TYPE_CHECKING:
    from torch import Tensor

_TABLES = ("row", "column", "rank", "descending_rank")


class TableCellEmbedding(Embedding, name="table_cells"):
    """Vectors for the row, the column and the two ranks of a token's cell, each from a table of its own."""

    paper = "arXiv:2004.02349"
    channel: ClassVar[str] = "table_cells"
    shape: ClassVar[tuple[int, ...]] = (len(_TABLES),)

    size: int = Field(256, gt=0)
    """Number of vectors in each table, as many as the channel has values."""

    @property
    def tables(self) -> Mapping[str, int]:
        return dict.fromkeys(_TABLES, self.size)

    def lookups(self, values: Tensor) -> Sequence[tuple[str, Tensor]]:
        return [*zip(_TABLES, values.unbind(-1), strict=True)]
