"""Columns of encoded examples: one array with an entry for each, or arrays of different lengths in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray


class RaggedArrays(Sequence["NDArray[Any]"]):
    """Arrays of different lengths, int64 or float32, one after the other in `values` [sum of lengths, …], which may be
    a mapped file."""

    def __init__(self, values: NDArray[Any], lengths: NDArray[np.int64]) -> None:
        self._values = values
        self._bounds = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])

    @property
    def lengths(self) -> NDArray[np.int64]:
        """int64 [N]: length of each."""
        return np.diff(self._bounds)

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, index: int) -> NDArray[Any]: ...

    @overload
    def __getitem__(self, index: slice) -> list[NDArray[Any]]: ...

    def __getitem__(self, index: int | slice) -> NDArray[Any] | list[NDArray[Any]]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        # negative indices and the end of an iteration are those of a range
        at = range(len(self))[index]
        return self._values[self._bounds[at] : self._bounds[at + 1]].astype(batch_kind(self._values))


Columns: TypeAlias = Mapping[str, Any]
"""Name → an array [N, …], or a sequence of N arrays of different lengths, int64 or float32."""


def batch_kind(values: NDArray[Any]) -> type[np.int64] | type[np.float32]:
    """dtype of `values` in a batch, whatever they are stored as."""
    return np.float32 if values.dtype.kind == "f" else np.int64


def lengths_of(column: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """int64 [N]: the length of each array."""
    if isinstance(column, RaggedArrays):
        return column.lengths
    return np.asarray([len(one) for one in column], dtype=np.int64)
