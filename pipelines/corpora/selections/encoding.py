"""Texts of Parquet files as files of vectors: half-precision numbers, read again a block at a time.

    Learned ─▶ a folder with what the vectors learned from a sample
    Encoded ─▶ vectors.f16, shape.json: the texts of one file

A vector takes two bytes a dimension on disk; in memory are a batch of texts, or a block of vectors.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipelines.corpora.vectors import TextVectors

if TYPE_CHECKING:
    from numpy.typing import NDArray

BATCH = 512
"""Texts read and encoded at once."""
BLOCK = 2**15
"""Vectors read at once."""
_VECTORS, _SHAPE = "vectors.f16", "shape.json"


@dataclass(frozen=True)
class LearnedVectors:
    """A unit of work: the vectors learn from texts evenly drawn from `own` (at most half of them) and `domain`."""

    name: str
    vectors: TextVectors
    own: Mapping[Path, int]
    domain: Mapping[Path, int]

    def __call__(self, folder: Path) -> None:
        wanted = self.vectors.learns_from
        of_own = evenly(sum(self.own.values()), wanted // 2)
        of_domain = evenly(sum(self.domain.values()), wanted - len(of_own))
        found = [*texts_at(self.own, of_own).values(), *texts_at(self.domain, of_domain).values()]
        self.vectors.learn(found, folder)


@dataclass(frozen=True)
class EncodedFile:
    """A unit of work: the vectors of one file's `count` texts."""

    name: str
    vectors: TextVectors
    learned: Path
    root: Path
    path: Path
    count: int

    def __call__(self, folder: Path) -> None:
        encode = self.vectors.encoder(self.learned, self.root)
        dimensions = 0
        with (folder / _VECTORS).open("wb") as file:
            for texts in batches(self.path):
                found = encode(texts)
                dimensions = found.shape[1]
                file.write(found.astype(np.float16).tobytes())
        (folder / _SHAPE).write_text(json.dumps([self.count, dimensions]))


def shape_of(encoded: Path) -> tuple[int, int]:
    """Texts and dimensions of the folder of an `Encoded`; no dimensions where it has no text."""
    count, dimensions = json.loads((encoded / _SHAPE).read_text())
    return count, dimensions


def blocks(encoded: Path, size: int = BLOCK) -> Iterator[NDArray[np.float32]]:
    """The vectors in a folder of an `Encoded`, [N, D] with N at most `size`."""
    count, _ = shape_of(encoded)
    for begin in range(0, count, size):
        yield rows(encoded, begin, min(size, count - begin))


def rows(encoded: Path, begin: int, count: int) -> NDArray[np.float32]:
    """`count` vectors from number `begin` on, [count, D]."""
    _, dimensions = shape_of(encoded)
    flat = np.fromfile(encoded / _VECTORS, np.float16, count * dimensions, offset=2 * begin * dimensions)
    return flat.reshape(count, dimensions).astype(np.float32)


def rows_between(encoded: Sequence[Path], begin: int, end: int) -> NDArray[np.float32]:
    """The vectors from number `begin` to `end` of several folders one after the other, [end − begin, D]."""
    found, first = [], 0
    for folder in encoded:
        count, _ = shape_of(folder)
        low, high = max(begin, first), min(end, first + count)
        if low < high:
            found.append(rows(folder, low - first, high - low))
        first += count
    return np.concatenate(found)


def batches(path: Path) -> Iterator[list[str]]:
    """The texts of a Parquet file, at most BATCH at once."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(BATCH, columns=["text"]):
            yield batch["text"].to_pylist()


def texts_at(files: Mapping[Path, int], numbers: Sequence[int]) -> dict[int, str]:
    """The texts with these numbers, which ascend, counted through all files in order."""
    found: dict[int, str] = {}
    wanted = np.asarray(numbers, np.int64)
    first = 0
    for path, count in files.items():
        if np.any((wanted >= first) & (wanted < first + count)):
            begin = first
            for texts in batches(path):
                here = wanted[(wanted >= begin) & (wanted < begin + len(texts))]
                found |= {int(number): texts[number - begin] for number in here}
                begin += len(texts)
        first += count
    return found


def evenly(count: int, wanted: int) -> list[int]:
    """At most `wanted` numbers below `count`, evenly apart."""
    return sorted({number * count // wanted for number in range(wanted)}) if count else []
