"""The beginnings of tables of text, as much as is asked for and no more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipelines.training.batches.encoded_shards import extents


def beginning(tables: Sequence[Path], most: float) -> Iterator[str]:
    """The first `most` UTF-8 bytes of the texts of `tables`, in their order; the last text is cut where it exceeds them.

    Several tables take turns, so that each has the same share of itself read.
    """
    left = most
    for extent in extents(tables):
        for texts in extent.texts():
            for text in texts:
                if left <= 0:
                    return
                size = len(text.encode())
                yield text if size <= left else text.encode()[: int(left)].decode(errors="ignore")
                left -= size
