"""Which texts of a large collection are nearly copies of an earlier one?

Texts that have a band of their MinHash signatures in common are compared with the earliest of them; those unlike it with
the earliest of the rest, and so on. What is alike enough is joined, and of everything joined the earliest text stays. The
texts are known by their place in the collection, so the answer does not depend on how it is cut into shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.corpora.duplicates.minhash import Bands, similarity
from pipelines.corpora.duplicates.sorted_keys import Numbers, SortedKeys, repeated, sizes

Earliest = NDArray[np.uint32]

PAIRS_AT_ONCE = 2**15
"""Pairs of signatures in memory at once: 16 MB."""
TEXTS_AT_ONCE = 2**20
ROUNDS = 64
"""Texts of one band with so many kinds of text among them are boilerplate; the rest of them is not compared."""


@dataclass(frozen=True)
class Sketches:
    """What one shard says of its texts: `signatures` [n, values] and, ordered, the keys of every band."""

    folder: Path
    first: int
    """The number of its first text."""

    def band(self, number: int) -> SortedKeys:
        """The keys of one band."""
        return SortedKeys.read(self.folder, f"band{number}", self.first)

    @property
    def signatures(self) -> NDArray[np.uint16]:
        """[n, values] the low half of each value: enough to compare, half the disk."""
        found: NDArray[np.uint16] = np.load(self.folder / "signatures.npy", mmap_mode="r")
        return found


def clusters(shards: Sequence[Sketches], bands: Bands, candidates: NDArray[np.bool_]) -> Earliest:
    """[texts] the number of the earliest text that each belongs to; its own, if there is none.

    Only texts that are `candidates` are compared. 4 bytes of memory a text, of which there are less than 2^32.
    """
    earliest = np.arange(len(candidates), dtype=np.uint32)
    for number in range(bands.bands):
        for numbers, starts in repeated([shard.band(number) for shard in shards]):
            group = np.repeat(np.arange(len(starts)), sizes(starts, len(numbers)))
            alive = candidates[numbers]
            for pairs in _alike(numbers[alive], group[alive], earliest, shards, bands.least):
                _join(earliest, pairs)
    return earliest


def _alike(
    numbers: Numbers, group: Numbers, earliest: Earliest, shards: Sequence[Sketches], least: float
) -> Iterator[NDArray[np.int64]]:
    """Pairs [m, 2] of near copies among the texts of each group."""
    for _ in range(ROUNDS):
        begins = np.append(True, group[1:] != group[:-1])[: len(group)]
        if begins.all():
            return
        head = numbers[begins][np.cumsum(begins) - 1]
        unlike = ~begins & (earliest[head] != earliest[numbers])
        pairs = np.stack([head[unlike], numbers[unlike]], axis=1)
        near = np.concatenate([np.empty(0, np.bool_), *_compared(pairs, shards, least)])
        yield pairs[near]
        unlike[unlike] = ~near
        numbers, group = numbers[unlike], group[unlike]


def _compared(pairs: NDArray[np.int64], shards: Sequence[Sketches], least: float) -> Iterator[NDArray[np.bool_]]:
    firsts = np.array([shard.first for shard in shards])
    for begin in range(0, len(pairs), PAIRS_AT_ONCE):
        some = pairs[begin : begin + PAIRS_AT_ONCE]
        signatures: dict[int, NDArray[np.uint16]] = {}
        for side in (0, 1):
            owner = np.searchsorted(firsts, some[:, side], side="right") - 1
            for each in np.unique(owner).tolist():
                mine = owner == each
                values = shards[each].signatures[some[mine, side] - firsts[each]]
                signatures.setdefault(side, np.empty((len(some), values.shape[1]), np.uint16))[mine] = values
        yield similarity(signatures[0], signatures[1]) >= least


def _join(earliest: Earliest, pairs: NDArray[np.int64]) -> None:
    """Union-find over arrays: every text points at the earliest of its own, before and after."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not len(pairs):
        return
    roots, ends = np.unique(earliest[pairs], return_inverse=True)
    ends = ends.reshape(-1, 2)
    graph = coo_array((np.ones(len(ends), np.bool_), (ends[:, 0], ends[:, 1])), shape=(len(roots), len(roots)))
    count, component = connected_components(graph, directed=False)
    least = np.full(count, np.iinfo(np.uint32).max, np.uint32)
    np.minimum.at(least, component, roots)
    earliest[roots] = least[component]
    for begin in range(0, len(earliest), TEXTS_AT_ONCE):  # what pointed at a root that is none any more
        some = slice(begin, begin + TEXTS_AT_ONCE)
        earliest[some] = earliest[earliest[some]]
