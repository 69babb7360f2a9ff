"""Examples encoded as rows of token ids, and their collation into batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pipelines.task_families import Row
from pipelines.task_families.columns import Columns, batch_kind
from pipelines.vocabulary import Field

FieldArrays: TypeAlias = dict[Field, NDArray[Any]]

MULTIPLE = 8
"""Padded lengths are rounded up to multiples of this."""
IGNORED = -100
"""Label of positions that losses ignore."""


class EncodedExamples(ABC):
    """Examples as items that a network can read: one item per example, or several where it exceeds the maximum
    length."""

    examples: Sequence[Row]
    lengths: NDArray[np.int64]
    """[items] tokens of each item; items of similar length share a batch."""
    owners: NDArray[np.int64]
    """[items] index of the example that each item belongs to, ascending."""

    complete: Callable[[FieldArrays], FieldArrays] | None = None
    """What every batch goes through: injected knowledge, and which tokens attend to which."""

    def __len__(self) -> int:
        return len(self.lengths)

    @abstractmethod
    def collate(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """Collate the items `chosen` [B], padded to the longest of them; answers are included where they are known."""

    @abstractmethod
    def columns(self) -> Columns:
        """All that batches are made of, by name. Of examples that are encoded in parts, each column is the columns of
        the parts, one after the other."""

    @abstractmethod
    def with_columns(self, examples: Sequence[Row], columns: Columns) -> Self:
        """Other `examples`, encoded alike, with all that their batches are made of."""

    def batch(self, chosen: NDArray[np.int64]) -> FieldArrays:
        """The batch of the items `chosen` [B] that a network reads."""
        fields = self.collate(chosen)
        return fields if self.complete is None else self.complete(fields)


def pad_rows(rows: Sequence[NDArray[Any]], value: int, multiple: int = MULTIPLE) -> NDArray[Any]:
    """Pad `rows` [length, …] with `value` to the longest, rounded up to `multiple`: [B, L, …], int64 or float32."""
    longest = -(-max(len(row) for row in rows) // multiple) * multiple
    result = np.full((len(rows), longest, *rows[0].shape[1:]), value, dtype=batch_kind(rows[0]))
    for index, row in enumerate(rows):
        result[index, : len(row)] = row
    return result


def attention_masks(rows: Sequence[NDArray[np.int64]], length: int) -> NDArray[np.int64]:
    """Attention mask of padded rows: int64 [B, length], 1 for tokens, 0 for padding."""
    result = np.zeros((len(rows), length), dtype=np.int64)
    for index, row in enumerate(rows):
        result[index, : len(row)] = 1
    return result
