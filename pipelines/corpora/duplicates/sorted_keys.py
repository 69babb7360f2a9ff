"""Find repeated keys in a collection too large for memory.

Every shard of the collection has its keys sorted on disk, so that an interval of keys is one slice of each shard.
Intervals are processed one after the other: about KEYS_AT_ONCE keys are in memory, however many there are, and each is
read once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.corpora.duplicates.shingles import Hashes

KEYS_AT_ONCE = 2**20
"""Keys in memory at once, about 60 bytes each."""

Numbers = NDArray[np.int64]
"""Indices of texts or paragraphs."""


@dataclass(frozen=True)
class SortedKeys:
    """Keys of one shard: `keys` [parts, n] sorted by column, `numbers` [n] the indices of the texts they belong to."""

    keys: Hashes
    numbers: NDArray[np.int64]
    first: int = 0
    """Offset that is added to `numbers`."""

    @classmethod
    def read(cls, folder: Path, name: str, first: int = 0) -> SortedKeys:
        """Memory-map what `write_sorted` wrote."""
        return cls(
            np.load(folder / f"{name}.keys.npy", mmap_mode="r"),
            np.load(folder / f"{name}.numbers.npy", mmap_mode="r"),
            first,
        )


def write_sorted(folder: Path, name: str, keys: Hashes, numbers: Numbers) -> None:
    """Write keys [n, parts], sorted, and the indices [n] of what they belong to into `folder`."""
    order = np.lexsort((numbers, *keys.T[::-1]))
    np.save(folder / f"{name}.keys.npy", np.ascontiguousarray(keys[order].T))
    np.save(folder / f"{name}.numbers.npy", numbers[order].astype(np.int64))


def repeated(parts: Sequence[SortedKeys]) -> Iterator[tuple[Numbers, Numbers]]:
    """Yield, per interval of keys, the indices that share a key with another, and the start of each group of equals.

    The indices of a group are ascending.
    """
    total = sum(part.keys.shape[1] for part in parts)
    intervals = max(1, math.ceil(total / KEYS_AT_ONCE))
    limits = [np.uint64((number << 64) // intervals) for number in range(1, intervals)]
    cuts = [[0, *np.searchsorted(part.keys[0], limits).tolist(), part.keys.shape[1]] for part in parts]
    for interval in range(intervals):
        slices = [
            (
                part.keys[:, cut[interval] : cut[interval + 1]],
                part.numbers[cut[interval] : cut[interval + 1]] + part.first,
            )
            for part, cut in zip(parts, cuts, strict=True)
        ]
        keys = np.concatenate([each for each, _ in slices], axis=1)
        numbers = np.concatenate([each for _, each in slices])
        order = np.lexsort((numbers, *keys[::-1]))
        keys, numbers = keys[:, order], numbers[order]
        same = np.all(keys[:, 1:] == keys[:, :-1], axis=0)
        first, last = np.append(False, same), np.append(same, False)
        inside = first | last  # belongs to a group of two or more
        if inside.any():
            yield numbers[inside], np.flatnonzero(~first[inside]).astype(np.int64)


def sizes(starts: Numbers, count: int) -> Numbers:
    """Size of each group, given the `starts` of groups among `count` indices."""
    return np.diff(starts, append=count).astype(np.int64)
