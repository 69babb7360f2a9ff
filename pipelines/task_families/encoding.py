"""Examples as rows of token ids: what a head makes of a labelled table, and how rows become batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipelines.task_families import Row
from pipelines.vocabulary import Field

FieldArrays: TypeAlias = dict[Field, NDArray[Any]]

MULTIPLE = 8
"""Padded lengths are multiples of this."""
IGNORED = -100
"""Label of a position that no loss counts."""


class Encoded(ABC):
    """Items that a network can read. An example is one item, or several where it is longer than a row."""

    examples: Sequence[Row]
    lengths: NDArray[np.int64]
    """[items] tokens of each item: items of like length share a batch."""
    owners: NDArray[np.int64]
    """[items] the example each item comes from, ascending."""

    def __len__(self) -> int:
        return len(self.lengths)

    @abstractmethod
    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """The batch of the items `chosen` [B], padded to the longest of them; answers included where they are known."""


def padded(rows: Sequence[NDArray[np.int64]], value: int, multiple: int = MULTIPLE) -> NDArray[np.int64]:
    """int64 [B, L]: `rows` side by side, filled with `value` up to the longest, rounded up to `multiple`."""
    longest = -(-max(len(row) for row in rows) // multiple) * multiple
    result = np.full((len(rows), longest), value, dtype=np.int64)
    for index, row in enumerate(rows):
        result[index, : len(row)] = row
    return result


def attention(rows: Sequence[NDArray[np.int64]], length: int) -> NDArray[np.int64]:
    """int64 [B, length]: 1 for the tokens of each row, 0 behind them."""
    result = np.zeros((len(rows), length), dtype=np.int64)
    for index, row in enumerate(rows):
        result[index, : len(row)] = 1
    return result
