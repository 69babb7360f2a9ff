"""Which texts stand in a dataset more than once, in bounded memory: one range of keys at a time.

Every measured file holds its keys in ascending order, so that a range of them is one slice of it, read from disk without the
rest. The ranges divide the keys, which are hashes, evenly.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

KEYS_AT_ONCE = 1_000_000
"""Keys of one range: finding what is repeated among them takes about 100 bytes a key."""
REPEATS = np.dtype([("file", "i4"), ("row", "u4"), ("copies", "i4"), ("also", "i1")])
"""A row whose text stands elsewhere too: how often in its own table, and in which table nearer to the test (−1: none)."""


@dataclass(frozen=True)
class KeyFile:
    """The keys of one file, the rank of its table (0: the test), and the ranks that may hold the same texts."""

    folder: Path
    rank: int
    sharing: frozenset[int] = frozenset()


@dataclass(frozen=True)
class RepeatedKeys:
    """A unit of work: what is repeated among the keys of range `part` of `parts`."""

    files: tuple[KeyFile, ...]
    part: int
    parts: int

    @property
    def name(self) -> str:
        """Says which range."""
        return f"keys-{self.part:04d}"

    def __call__(self, folder: Path) -> None:
        np.save(folder / "repeats.npy", repeated(self.files, self.part, self.parts))


def ranges_of(documents: int) -> int:
    """How many ranges hold about `KEYS_AT_ONCE` keys each."""
    return max(1, -(-documents // KEYS_AT_ONCE))


def repeated(files: tuple[KeyFile, ...], part: int, parts: int) -> NDArray[np.void]:
    """`REPEATS` [M], by file and row."""
    keys, rows, owner = [], [], []
    for number, file in enumerate(files):
        mapped = np.load(file.folder / "keys.npy", mmap_mode="r")
        begin, end = (_range_begin(mapped[:, 0], edge, parts) for edge in (part, part + 1))
        keys.append(np.array(mapped[begin:end]))
        rows.append(np.array(np.load(file.folder / "order.npy", mmap_mode="r")[begin:end]))
        owner.append(np.full(end - begin, number, dtype=np.int32))
    key, row, file_of = np.concatenate(keys), np.concatenate(rows), np.concatenate(owner)
    rank_of_file = np.array([file.rank for file in files], dtype=np.int8)
    rank = rank_of_file[file_of]
    order = np.lexsort((rank, key[:, 1], key[:, 0]))
    key, row, file_of, rank = key[order], row[order], file_of[order], rank[order]
    fresh = np.ones(len(key), dtype=bool)
    fresh[1:] = (key[1:] != key[:-1]).any(axis=1)
    group = np.cumsum(fresh) - 1
    own = fresh.copy()
    own[1:] |= rank[1:] != rank[:-1]
    run = np.cumsum(own) - 1
    copies = np.bincount(run, minlength=1)[run] if len(run) else run
    also = np.full(len(key), -1, dtype=np.int8)
    for near in range(int(rank_of_file.max()) if len(files) else 0):
        holds = np.bincount(group[rank == near], minlength=int(group[-1]) + 1 if len(group) else 0) > 0
        may = np.array([near < file.rank and near not in file.sharing for file in files])
        also = np.where((also < 0) & holds[group] & may[file_of], np.int8(near), also)
    found = np.flatnonzero((copies > 1) | (also >= 0))
    table = np.empty(len(found), dtype=REPEATS)
    table["file"], table["row"] = file_of[found], row[found]
    table["copies"], table["also"] = copies[found], also[found]
    return table[np.lexsort((table["row"], table["file"]))]


def repeats_of_file(folders: tuple[Path, ...], number: int) -> NDArray[np.void]:
    """The repeats of file `number`, out of every range."""
    found = []
    for folder in folders:
        table = np.load(folder / "repeats.npy", mmap_mode="r")
        begin, end = np.searchsorted(table["file"], [number, number + 1])
        found.append(np.array(table[begin:end]))
    return np.concatenate(found)


def _range_begin(keys: NDArray[np.uint64], edge: int, parts: int) -> int:
    """Where range `edge` begins among ascending first halves of keys."""
    return len(keys) if edge >= parts else int(np.searchsorted(keys, np.uint64((edge << 64) // parts)))
