"""Options for reading the files of a source."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Record = tuple[str, dict[str, Any]]
"""Location (`reviews.jsonl:17`) and columns of a record."""
Records = Iterator[Record]

LONGEST_DOCUMENT = 8 * 2**20
"""Bytes. A novel has half a million, the Bible four million; longer documents are usually files that lost their line
ends.

Decoded, parsed and written again, one byte of a document takes up to 25 bytes of memory: 8 MiB fit a data step's
process.
"""


@dataclass(frozen=True)
class ReadOptions:
    """Options that hold for every file of a source."""

    columns: tuple[str, ...] = ("text",)
    """Required columns."""
    header: tuple[str, ...] = ()
    """Field names for csv and tsv files without a header row; empty: the first row is the header."""
    encoding: str = "utf-8"
    longest: int = LONGEST_DOCUMENT
    """Limit for a line or row in bytes, and for a document of several lines in characters; it bounds the memory for
    reading."""
    lines: bool = False
    """Whether files hold one text per line, whatever their extension."""
