"""Embeddings: tables that a backbone adds to its input, one vector for each token, chosen by a channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pipelines.components import Component

if TYPE_CHECKING:
    from torch import Tensor


class Embedding(Component):
    """What one channel adds to the input of a backbone: the sum of the rows that its values select in one table, or in
    several.

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
