"""The rows of a table of shards, as tests look at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipelines.corpora.shards.folders import table_files
from pipelines.corpora.shards.tables import Row, read_rows


def table_rows(table: Path) -> Iterator[Row]:
    """The rows of a table, one group in memory at a time."""
    for file in table_files(table):
        yield from read_rows(file)
