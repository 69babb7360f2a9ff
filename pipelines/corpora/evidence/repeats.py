"""Find repeated texts of a dataset in bounded memory, one range of keys at a time.

Every measured file has its keys in ascending order, so that a range of keys is one slice, read from disk without the
rest. The ranges divide the keys, which are hashes, evenly.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

KEYS_AT_ONCE = 1_000_000
"""Keys in one range; finding repeats takes about 100 bytes of memory per key."""
REPEATS = np.dtype([("file", "i4"), ("row", "u4"), ("copies", "i4"), ("also", "i1")])
"""A row whose text is repeated: its number of copies in its own table, and the rank of the table nearest to the test
that also has it (−1: none)."""


@dataclass(frozen=True)
class KeyFile:
    """Keys of one file, the rank of its table (0: the test), and the ranks of tables that may have the same texts."""

    folder: Path
    rank: int
    sharing: frozenset[int] = frozenset()


@dataclass(frozen=True)
class RepeatedKeys:
    """Unit of work: find repeats among the keys of range `part` of `parts`."""

    files: tuple[KeyFile, ...]
    part: int
    parts: int

    @property
    def name(self) -> str:
        """Name of the unit's folder, unique for the range."""
        return f"keys-{self.part:04d}"

    def __call__(self, folder: Path) -> None:
        np.save(folder / "repeats.npy", repeated(self.files, self.part, self.parts))


def ranges_of(documents: int) -> int:
    """Number of ranges with about `KEYS_AT_ONCE` keys each."""
    return max(1, -(-documents // KEYS_AT_ONCE))


def repeated(files: tuple[KeyFile, ...], part: int, parts: int) -> NDArray[np.void]:
    """`REPEATS` [M], sorted by file and row."""
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
    selected = np.flatnonzero((copies > 1) | (also >= 0))
    table = np.empty(len(selected), dtype=REPEATS)
    table["file"], table["row"] = file_of[selected], row[selected]
    table["copies"], table["also"] = copies[selected], also[selected]
    return table[np.lexsort((table["row"], table["file"]))]


def repeats_of_file(folders: tuple[Path, ...], number: int) -> NDArray[np.void]:
    """Repeats of file `number`, from all ranges."""
    parts = []
    for folder in folders:
        table = np.load(folder / "repeats.npy", mmap_mode="r")
        begin, end = np.searchsorted(table["file"], [number, number + 1])
        parts.append(np.array(table[begin:end]))
    return np.concatenate(parts)


def _range_begin(keys: NDArray[np.uint64], edge: int, parts: int) -> int:
    """Index at which range `edge` begins among the ascending first halves of keys."""
    return len(keys) if edge >= parts else int(np.searchsorted(keys, np.uint64((edge << 64) // parts)))
