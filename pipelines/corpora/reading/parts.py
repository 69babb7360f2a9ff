"""Split files into parts that several processes can read.

    parts_of("big.jsonl", path, ...)      [0, 64 MiB), [64, 128 MiB), …: a line belongs to the part in which it begins
    parts_of("big.parquet", path, ...)    row groups 0–3, 4–7, …
    parts_of("reviews.jsonl", path, ...)  one part, like every compressed file, csv, and txt with blank lines

Splitting reads nothing but the footer of a Parquet file and depends on the size of the file alone, so that rows and
their locations are the same for any number of processes. In a file of several parts a location is a byte offset
(`big.jsonl@73400321`, for `tail -c +73400322 big.jsonl | head -1`), in a file of one part a line (`reviews.jsonl:17`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pipelines.corpora.reading.extensions import is_compressed
from pipelines.errors import DataError

PART_BYTES = 64 * 2**20
"""Approximate size of a unit of work: a part of a file, or several small files."""
MOST_FILES_TOGETHER = 4096

_COMPRESSION_RATIO = 4
"""Approximate bytes of text per byte of a compressed file."""


@dataclass(frozen=True)
class Part:
    """A file, or a range of one that can be read independently. Equal parts of an unchanged file yield equal rows."""

    name: str
    """The file's name in `source` columns."""
    path: Path
    bytes: int
    """Size of the whole file when it was split."""
    modified: int
    """Modification time in nanoseconds; with `bytes`, it shows that the file changed."""
    begin: int = 0
    """First byte (Parquet: row group) at which a record of this part may begin."""
    end: int | None = None
    """End of that range, exclusive; None for the end of the file."""

    @property
    def is_whole(self) -> bool:
        return self.begin == 0 and self.end is None

    @property
    def weight(self) -> int:
        """Approximate bytes of text in this part."""
        if self.path.suffix == ".parquet" or is_compressed(self.path):
            return self.bytes * _COMPRESSION_RATIO
        return (self.bytes if self.end is None else self.end) - self.begin

    def check_unchanged(self) -> None:
        """Raise DataError when the file changed since it was split."""
        now = whole_file(self.name, self.path)
        if (now.bytes, now.modified) != (self.bytes, self.modified):
            raise DataError(
                f"{self.path}: the file changed while it was read ({self.bytes:,} bytes before, {now.bytes:,} now); "
                "run again when no process writes to it"
            )


def whole_file(name: str, path: Path) -> Part:
    """A file as one part. DataError when it is missing or cannot be accessed."""
    try:
        state = os.stat(path)
    except OSError as error:
        raise DataError(f"{path}: cannot be accessed: {error.strerror}; check the path and its permissions") from None
    return Part(name, path, state.st_size, state.st_mtime_ns)


def split_by_bytes(part: Part, size: int) -> list[Part]:
    """Split a whole file into ranges of about `size` bytes; a file of at most `size` bytes stays one part."""
    if part.bytes <= size:
        return [part]
    begins = range(0, part.bytes, size)
    return [replace(part, begin=begin, end=min(begin + size, part.bytes)) for begin in begins]


def group_parts(
    parts: Iterable[Part], size: int = PART_BYTES, most: int = MOST_FILES_TOGETHER
) -> Iterator[tuple[Part, ...]]:
    """Group neighbouring parts up to a weight of about `size` bytes, so that small files share a unit of work."""
    group: list[Part] = []
    weight = 0
    for part in parts:
        if group and (weight + part.weight > size or len(group) == most):
            yield tuple(group)
            group, weight = [], 0
        group.append(part)
        weight += part.weight
    if group:
        yield tuple(group)
