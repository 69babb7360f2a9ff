"""Cluster the near-duplicates of a large collection; the earliest text of each cluster is kept.

Texts that share a band of their MinHash signatures are compared with the earliest of them; those that differ from it
with the earliest of the rest, and so on. Similar texts are joined into one cluster. Texts are identified by their index
in the collection, so that the result does not depend on how the collection is divided into shards.
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
"""Texts whose cluster is updated at once."""
ROUNDS = 64
"""Rounds of comparison within one band: a band that holds more distinct texts is boilerplate, and is not compared
further."""


@dataclass(frozen=True)
class Sketches:
    """Sketches of one shard on disk: `signatures` [n, values] and the sorted keys of every band."""

    folder: Path
    first: int
    """Index of its first text."""

    def band(self, number: int) -> SortedKeys:
        """Sorted keys of one band."""
        return SortedKeys.read(self.folder, f"band{number}", self.first)

    @property
    def signatures(self) -> NDArray[np.uint16]:
        """[n, values] Low 16 bits of each value: enough to compare, at half the disk space."""
        values: NDArray[np.uint16] = np.load(self.folder / "signatures.npy", mmap_mode="r")
        return values


def clusters(shards: Sequence[Sketches], bands: Bands, candidates: NDArray[np.bool_]) -> Earliest:
    """[texts] Index of the earliest text in the cluster of each text; its own index if it is alone.

    Only `candidates` are compared. Takes 4 bytes of memory per text; limited to fewer than 2^32 texts.
    """
    earliest = np.arange(len(candidates), dtype=np.uint32)
    for number in range(bands.bands):
        for numbers, starts in repeated([shard.band(number) for shard in shards]):
            group = np.repeat(np.arange(len(starts)), sizes(starts, len(numbers)))
            alive = candidates[numbers]
            for pairs in _similar_pairs(numbers[alive], group[alive], earliest, shards, bands.least):
                _join(earliest, pairs)
    return earliest


def _similar_pairs(
    numbers: Numbers, group: Numbers, earliest: Earliest, shards: Sequence[Sketches], least: float
) -> Iterator[NDArray[np.int64]]:
    """Yield pairs [m, 2] of near-duplicates among the texts of each group."""
    for _ in range(ROUNDS):
        begins = np.append(True, group[1:] != group[:-1])[: len(group)]
        if begins.all():
            return
        head = numbers[begins][np.cumsum(begins) - 1]
        different = ~begins & (earliest[head] != earliest[numbers])
        pairs = np.stack([head[different], numbers[different]], axis=1)
        near = np.concatenate([np.empty(0, np.bool_), *_compared(pairs, shards, least)])
        yield pairs[near]
        different[different] = ~near
        numbers, group = numbers[different], group[different]


def _compared(pairs: NDArray[np.int64], shards: Sequence[Sketches], least: float) -> Iterator[NDArray[np.bool_]]:
    firsts = np.array([shard.first for shard in shards])
    for begin in range(0, len(pairs), PAIRS_AT_ONCE):
        chunk = pairs[begin : begin + PAIRS_AT_ONCE]
        signatures: dict[int, NDArray[np.uint16]] = {}
        for side in (0, 1):
            owner = np.searchsorted(firsts, chunk[:, side], side="right") - 1
            for each in np.unique(owner).tolist():
                in_shard = owner == each
                values = shards[each].signatures[chunk[in_shard, side] - firsts[each]]
                signatures.setdefault(side, np.empty((len(chunk), values.shape[1]), np.uint16))[in_shard] = values
        yield similarity(signatures[0], signatures[1]) >= least


def _join(earliest: Earliest, pairs: NDArray[np.int64]) -> None:
    """Union-find over arrays: every text points at the earliest text of its cluster, before and after."""
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
    for begin in range(0, len(earliest), TEXTS_AT_ONCE):  # pointers to former roots
        chunk = slice(begin, begin + TEXTS_AT_ONCE)
        earliest[chunk] = earliest[earliest[chunk]]
