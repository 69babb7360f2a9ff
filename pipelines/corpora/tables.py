"""Tables of text on disk: deterministic Parquet, written aside and moved into place.

with written_aside(root / "data/prepared/mine/cleaned") as folder:
    count = write_rows(folder / "general.parquet", TEXTS, rows)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

ROWS_IN_A_GROUP = 8192

TEXTS = pa.schema([("text", pa.string()), ("source", pa.string())])
LABELLED = pa.schema([("text", pa.string()), ("label", pa.string()), ("source", pa.string())])
PARTS = pa.schema([("text", pa.string()), ("label", pa.string()), ("source", pa.string()), ("part", pa.string())])

Row = tuple[Any, ...]


def write_rows(path: Path, schema: pa.Schema, rows: Iterable[Row]) -> dict[str, int]:
    """Write rows in the order given, in groups of a fixed size; `text` is the first column.

    Returns how many documents, characters and UTF-8 bytes of text were written.
    """
    count = {"documents": 0, "characters": 0, "bytes": 0}
    waiting = iter(rows)
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := list(islice(waiting, ROWS_IN_A_GROUP)):
            columns = [
                pa.array(column, field.type) for column, field in zip(zip(*group, strict=True), schema, strict=True)
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=ROWS_IN_A_GROUP)
            count["documents"] += len(group)
            count["characters"] += sum(len(row[0]) for row in group)
            count["bytes"] += sum(len(row[0].encode()) for row in group)
    return count


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a table, one group in memory at a time."""
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(batch_size=ROWS_IN_A_GROUP):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
