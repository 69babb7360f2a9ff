"""Encode texts of Parquet files as files of half-precision vectors, and read them in blocks.

    LearnedVectors ─▶ a folder with what was fitted on a sample of texts
    EncodedFile    ─▶ vectors.f16, shape.json: the vectors of one file's texts

Vectors take two bytes per dimension on disk; in memory are one batch of texts, or one block of vectors.
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
    """Unit of work: fit the vectors on texts drawn evenly from `own` (at most half of them) and `domain`."""

    name: str
    vectors: TextVectors
    own: Mapping[Path, int]
    domain: Mapping[Path, int]

    def __call__(self, folder: Path) -> None:
        size = self.vectors.learns_from
        from_own = evenly(sum(self.own.values()), size // 2)
        from_domain = evenly(sum(self.domain.values()), size - len(from_own))
        sample = [*texts_at(self.own, from_own).values(), *texts_at(self.domain, from_domain).values()]
        self.vectors.learn(sample, folder)


@dataclass(frozen=True)
class EncodedFile:
    """Unit of work: encode the `count` texts of one file."""

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
                encoded = encode(texts)
                dimensions = encoded.shape[1]
                file.write(encoded.astype(np.float16).tobytes())
        (folder / _SHAPE).write_text(json.dumps([self.count, dimensions]))


def shape_of(encoded: Path) -> tuple[int, int]:
    """Number of texts, and of dimensions, in the folder of an `EncodedFile`; 0 dimensions without texts."""
    count, dimensions = json.loads((encoded / _SHAPE).read_text())
    return count, dimensions


def blocks(encoded: Path, size: int = BLOCK) -> Iterator[NDArray[np.float32]]:
    """Yield the vectors in the folder of an `EncodedFile` as blocks [N, D], N at most `size`."""
    count, _ = shape_of(encoded)
    for begin in range(0, count, size):
        yield rows(encoded, begin, min(size, count - begin))


def rows(encoded: Path, begin: int, count: int) -> NDArray[np.float32]:
    """Vectors `begin` to `begin` + `count`, [count, D]."""
    _, dimensions = shape_of(encoded)
    flat = np.fromfile(encoded / _VECTORS, np.float16, count * dimensions, offset=2 * begin * dimensions)
    return flat.reshape(count, dimensions).astype(np.float32)


def rows_between(encoded: Sequence[Path], begin: int, end: int) -> NDArray[np.float32]:
    """Vectors `begin` to `end` of the concatenation of several folders, [end − begin, D]."""
    parts, first = [], 0
    for folder in encoded:
        count, _ = shape_of(folder)
        low, high = max(begin, first), min(end, first + count)
        if low < high:
            parts.append(rows(folder, low - first, high - low))
        first += count
    return np.concatenate(parts)


def batches(path: Path) -> Iterator[list[str]]:
    """Yield the texts of a Parquet file in batches of at most BATCH."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(BATCH, columns=["text"]):
            yield batch["text"].to_pylist()


def texts_at(files: Mapping[Path, int], numbers: Sequence[int]) -> dict[int, str]:
    """Texts at ascending indices `numbers`, which count through all files in order."""
    selected: dict[int, str] = {}
    indices = np.asarray(numbers, np.int64)
    first = 0
    for path, count in files.items():
        if np.any((indices >= first) & (indices < first + count)):
            begin = first
            for texts in batches(path):
                here = indices[(indices >= begin) & (indices < begin + len(texts))]
                selected |= {int(number): texts[number - begin] for number in here}
                begin += len(texts)
        first += count
    return selected


def evenly(count: int, size: int) -> list[int]:
    """At most `size` evenly spaced integers below `count`."""
    return sorted({number * count // size for number in range(size)}) if count else []
