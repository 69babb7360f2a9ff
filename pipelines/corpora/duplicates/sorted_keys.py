"""Which keys stand more than once in a collection too large for memory?

Every shard of the collection keeps its own keys in order on disk, so that an interval of the keys is one slice of each. The
intervals are looked at one after the other: KEYS_AT_ONCE keys are in memory, whatever there are, and each is read once.
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
"""About 60 bytes of memory each."""

Numbers = NDArray[np.int64]


@dataclass(frozen=True)
class SortedKeys:
    """The keys of one shard: `keys` is [parts, n], ordered by its columns, and `numbers` [n] says whose they are."""

    keys: Hashes
    numbers: NDArray[np.int64]
    first: int = 0
    """Added to its numbers."""

    @classmethod
    def read(cls, folder: Path, name: str, first: int = 0) -> SortedKeys:
        """What `write_sorted` wrote, left on disk."""
        return cls(
            np.load(folder / f"{name}.keys.npy", mmap_mode="r"),
            np.load(folder / f"{name}.numbers.npy", mmap_mode="r"),
            first,
        )


def write_sorted(folder: Path, name: str, keys: Hashes, numbers: Numbers) -> None:
    """Write keys [n, parts] and whose they are [n] into `folder`, in order."""
    order = np.lexsort((numbers, *keys.T[::-1]))
    np.save(folder / f"{name}.keys.npy", np.ascontiguousarray(keys[order].T))
    np.save(folder / f"{name}.numbers.npy", numbers[order].astype(np.int64))


def repeated(parts: Sequence[SortedKeys]) -> Iterator[tuple[Numbers, Numbers]]:
    """For one interval of keys after the other: the numbers that share a key with another, and where each group begins.

    The numbers of a group are ascending.
    """
    total = sum(part.keys.shape[1] for part in parts)
    intervals = max(1, math.ceil(total / KEYS_AT_ONCE))
    limits = [np.uint64((number << 64) // intervals) for number in range(1, intervals)]
    cuts = [[0, *np.searchsorted(part.keys[0], limits).tolist(), part.keys.shape[1]] for part in parts]
    for interval in range(intervals):
        found = [
            (
                part.keys[:, cut[interval] : cut[interval + 1]],
                part.numbers[cut[interval] : cut[interval + 1]] + part.first,
            )
            for part, cut in zip(parts, cuts, strict=True)
        ]
        keys = np.concatenate([each for each, _ in found], axis=1)
        numbers = np.concatenate([each for _, each in found])
        order = np.lexsort((numbers, *keys[::-1]))
        keys, numbers = keys[:, order], numbers[order]
        same = np.all(keys[:, 1:] == keys[:, :-1], axis=0)
        first, last = np.append(False, same), np.append(same, False)
        inside = first | last  # of a group of two or more
        if inside.any():
            yield numbers[inside], np.flatnonzero(~first[inside]).astype(np.int64)


def sizes(starts: Numbers, count: int) -> Numbers:
    """How many numbers each group has that begins at `starts`, of `count` in all."""
    return np.diff(starts, append=count).astype(np.int64)
