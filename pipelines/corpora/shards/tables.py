"""Tables of text on disk: deterministic Parquet, written aside and moved into place.

with written_aside(root / "data/prepared/mine/cleaned") as folder:
    count = write_rows(folder / "general.parquet", TEXTS, rows)

A row of a labelled table is `text`, the family's other columns, and where it stands; while parts are kept together, `part`
is last. Where it stands is the column `source`, or `origin` when the family has a `source` of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.task_families import TaskFamily

ROWS_IN_A_GROUP = 8192
BYTES_IN_A_GROUP = 8 * 2**20
"""UTF-8 bytes of text after which a group is written, whatever its rows: what a reader holds in memory."""

TEXTS = pa.schema([("text", pa.string()), ("source", pa.string()), ("collection", pa.string())])
"""Plain text: where it stands, and the name of the source of params.yaml that it came by."""

Row = tuple[Any, ...]

_TYPES = {
    "string": pa.string(),
    "double": pa.float64(),
    "int64": pa.int64(),
    "list<string>": pa.list_(pa.string()),
    "list<int64>": pa.list_(pa.int64()),
    "list<list<string>>": pa.list_(pa.list_(pa.string())),
    "list<list<int64>>": pa.list_(pa.list_(pa.int64())),
}


def labelled(family: TaskFamily) -> pa.Schema:
    """The columns of the tables `train`, `validation` and `test`."""
    own = [(name, _TYPES[family.columns[name]]) for name in other_columns(family)]
    return pa.schema([("text", pa.string()), *own, (origin(family), pa.string())])


def labelled_parts(family: TaskFamily) -> pa.Schema:
    """The columns of the table that holds all parts of a task."""
    return labelled(family).append(pa.field("part", pa.string()))


def origin(family: TaskFamily) -> str:
    """The column that says where a row of a labelled table stands."""
    return "origin" if "source" in family.columns else "source"


def other_columns(family: TaskFamily) -> list[str]:
    """The family's columns that stand between `text` and where the row stands."""
    return [name for name in family.columns if name != "text"]


def example_of(family: TaskFamily, row: Row) -> dict[str, Any]:
    """The family's columns of a row of one of its tables."""
    values = dict(zip(["text", *other_columns(family)], row, strict=False))
    return {name: values[name] for name in family.columns}


def row_of(family: TaskFamily, example: dict[str, Any], *rest: str) -> Row:
    """A row of a table of the family: the example, then where it stands, and its part where parts are together."""
    return (family.text(example), *(example[name] for name in other_columns(family)), *rest)


class TableWriter:
    """A Parquet file of rows, written in groups of a fixed number of rows or bytes; `text` is the first column.

    Use it in a `with` block. `counts` says how many documents, characters and UTF-8 bytes of text were written.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.counts = {"documents": 0, "characters": 0, "bytes": 0}
        self._schema = schema
        self._file = pq.ParquetWriter(path, schema, compression="zstd")
        self._group: list[Row] = []
        self._bytes = 0

    def write(self, row: Row) -> None:
        """Add a row."""
        size = len(row[0].encode())
        self._group.append(row)
        self._bytes += size
        self.counts["documents"] += 1
        self.counts["characters"] += len(row[0])
        self.counts["bytes"] += size
        if len(self._group) >= ROWS_IN_A_GROUP or self._bytes >= BYTES_IN_A_GROUP:
            self._flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._flush()
        self._file.close()

    def _flush(self) -> None:
        if self._group:
            columns = [
                pa.array(column, field.type)
                for column, field in zip(zip(*self._group, strict=True), self._schema, strict=True)
            ]
            table = pa.Table.from_arrays(columns, schema=self._schema)
            self._file.write_table(table, row_group_size=ROWS_IN_A_GROUP)
            self._group, self._bytes = [], 0


def write_rows(path: Path, schema: pa.Schema, rows: Iterable[Row]) -> dict[str, int]:
    """Write rows in the order given. Returns how many documents, characters and UTF-8 bytes of text were written."""
    with TableWriter(path, schema) as writer:
        for row in rows:
            writer.write(row)
    return writer.counts


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a table, one group in memory at a time."""
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(batch_size=ROWS_IN_A_GROUP):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
