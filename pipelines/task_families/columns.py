"""Columns of encoded examples: one array with an entry for each, or arrays of different lengths in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray


class RaggedArrays(Sequence["NDArray[np.int64]"]):
    """Arrays of different lengths, one after the other in `values` [sum of lengths, …], which may be a mapped file."""

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
    def __getitem__(self, index: int) -> NDArray[np.int64]: ...

    @overload
    def __getitem__(self, index: slice) -> list[NDArray[np.int64]]: ...

    def __getitem__(self, index: int | slice) -> NDArray[np.int64] | list[NDArray[np.int64]]:
        if isinstance(index, slice):
            return [self[one] for one in range(*index.indices(len(self)))]
        # negative indices and the end of an iteration are those of a range
        at = range(len(self))[index]
        return self._values[self._bounds[at] : self._bounds[at + 1]].astype(np.int64)


Columns: TypeAlias = Mapping[str, Any]
"""Name → an array [N, …], or a sequence of N arrays int64 of different lengths."""


def lengths_of(column: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """int64 [N]: the length of each array."""
    if isinstance(column, RaggedArrays):
        return column.lengths
    return np.asarray([len(one) for one in column], dtype=np.int64)
