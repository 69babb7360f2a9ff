"""Read a prefix of text tables, up to a number of bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pipelines.training.batches.encoded_shards import row_group_ranges


def read_beginning(
    tables: Sequence[Path], limit: float, columns: Mapping[Path, tuple[str, ...]] | None = None
) -> Iterator[str]:
    """Yield the first `limit` UTF-8 bytes of the texts of `tables`, in order; the last text is truncated to fit.

    Several tables alternate, so that the same share of each is read. `columns` are those of `row_group_ranges`.
    """
    left = limit
    for one in row_group_ranges(tables, columns):
        for texts in one.texts():
            for text in texts:
                if left <= 0:
                    return
                size = len(text.encode())
                yield text if size <= left else text.encode()[: int(left)].decode(errors="ignore")
                left -= size
