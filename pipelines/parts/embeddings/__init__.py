"""Embeddings: what a backbone adds to its input, one vector for each token: rows of tables that a channel chooses, or
the projections of a channel's own vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pipelines.components import Component

if TYPE_CHECKING:
    from torch import Tensor


class Embedding(Component):
    """What one channel adds to the input of a backbone: the sum of the rows that its values select in one table, or in
    several; or its vectors, projected to the width of the backbone (`ProjectedEmbedding`).

    A member with one table needs no method, only the name of its channel.
    """

    channel: ClassVar[str]
    """Name of the channel that is read; an annotation of the stage makes it."""
    shape: ClassVar[tuple[int, ...]] = ()
    """Shape of the channel's value for one token."""

    size: int = Field(gt=0)
    """Number of rows of a table: the channel's values must be less."""

    @property
    def tables(self) -> Mapping[str, int]:
        """Name of each table → its number of rows."""
        return {"rows": self.size}

    def lookups(self, values: Tensor) -> Sequence[tuple[str, Tensor]]:
        """(table, int64 [B, L]) of each row to add, for the channel's `values` [B, L, *shape]; a table may be read
        several times."""
        return [("rows", values)]

    @property
    def value_shape(self) -> tuple[int, ...]:
        """Shape of the channel's value for one token, with these options."""
        return self.shape

    @property
    def projections(self) -> Mapping[str, int]:
        """Name of each matrix that projects vectors → their width."""
        return {}

    def projected(self, values: Tensor) -> Sequence[tuple[str, Tensor]]:
        """(matrix, float32 [B, L, width]) of each projection to add, for the channel's `values` [B, L, *shape]."""
        return ()


class ProjectedEmbedding(Embedding):
    """What a channel of vectors adds to the input of a backbone: W · v for the vector v of each token, without a bias,
    so that a token whose vector is 0 gets nothing.

    A member needs no method, only the name of its channel.
    """

    size: int = Field(gt=0)
    """Width of the channel's vectors."""

    @property
    def value_shape(self) -> tuple[int, ...]:
        return (self.size,)

    @property
    def tables(self) -> Mapping[str, int]:
        return {}

    def lookups(self, values: Tensor) -> Sequence[tuple[str, Tensor]]:
        return ()

    @property
    def projections(self) -> Mapping[str, int]:
        return {"projection": self.size}

    def projected(self, values: Tensor) -> Sequence[tuple[str, Tensor]]:
        return [("projection", values)]
