"""Tables of text on disk: deterministic Parquet, replaced atomically.

with replaced_atomically(root / "data/prepared/mine/cleaned") as folder:
    count = write_rows(folder / "general.parquet", TEXTS, rows)

A row of a labelled table is `text`, the family's other columns and the row's location; while all parts are in one
table, `part` is last. The location column is `source`, or `origin` when the family has a column `source` of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, overload

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.task_families import TaskFamily

ROWS_IN_A_GROUP = 8192
BYTES_IN_A_GROUP = 8 * 2**20
"""UTF-8 bytes of text at which a row group is written, whatever its rows: readers hold one group in memory."""

FEW = 512
"""Values at the beginning of a column that are counted: it has few different ones if an eighth of these are."""

TEXTS = pa.schema([("text", pa.string()), ("source", pa.string()), ("collection", pa.string())])
"""Plain text, its location, and the name of its source in params.yaml."""

Row = tuple[Any, ...]

TYPES = {
    "string": pa.string(),
    "double": pa.float64(),
    "int64": pa.int64(),
    "list<string>": pa.list_(pa.string()),
    "list<int64>": pa.list_(pa.int64()),
    "list<list<string>>": pa.list_(pa.list_(pa.string())),
    "list<list<int64>>": pa.list_(pa.list_(pa.int64())),
    "list<list<double>>": pa.list_(pa.list_(pa.float64())),
}


def labelled(family: TaskFamily) -> pa.Schema:
    """Schema of the tables `train`, `validation` and `test`."""
    columns = [(name, TYPES[family.columns[name]]) for name in other_columns(family)]
    return pa.schema([("text", pa.string()), *columns, (origin(family), pa.string())])


def labelled_parts(family: TaskFamily) -> pa.Schema:
    """Schema of the table that holds all parts of a task."""
    return labelled(family).append(pa.field("part", pa.string()))


def origin(family: TaskFamily) -> str:
    """Name of the location column of a labelled table."""
    return "origin" if "source" in family.columns else "source"


def other_columns(family: TaskFamily) -> list[str]:
    """The family's columns between `text` and the location."""
    return [name for name in family.columns if name != "text"]


def example_of(family: TaskFamily, row: Row) -> dict[str, Any]:
    """Convert a row of a labelled table to the family's columns."""
    values = dict(zip(["text", *other_columns(family)], row, strict=False))
    return {name: values[name] for name in family.columns}


class ExampleRows(Sequence[dict[str, Any]]):
    """The examples of rows of a labelled table, each built on access: a million at once would take 300 MB."""

    def __init__(self, family: TaskFamily, rows: Sequence[Row]) -> None:
        self._family, self._rows = family, rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> ExampleRows: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | ExampleRows:
        if isinstance(index, slice):
            return ExampleRows(self._family, self._rows[index])
        return example_of(self._family, self._rows[index])


def row_of(family: TaskFamily, example: dict[str, Any], *rest: str) -> Row:
    """Convert an example to a row of a labelled table; `rest` is its location and, in the table of all parts, its
    part."""
    return (family.text(example), *(example[name] for name in other_columns(family)), *rest)


class TableWriter:
    """Writes rows to a Parquet file, in groups of a fixed number of rows or bytes; `text` is the first column.

    A context manager. `counts` holds the number of documents, characters and UTF-8 bytes of text written.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.counts = {"documents": 0, "characters": 0, "bytes": 0}
        self._schema = schema
        self._file = pq.ParquetWriter(path, schema, compression="zstd")
        self._group: list[Row] = []
        self._bytes = 0

    def write(self, row: Row) -> None:
        """Write a row."""
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
    """Write rows in order. Returns the number of documents, characters and UTF-8 bytes of text."""
    with TableWriter(path, schema) as writer:
        for row in rows:
            writer.write(row)
    return writer.counts


def read_rows(path: Path) -> Iterator[Row]:
    """Read the rows of a table, one group in memory at a time."""
    with pq.ParquetFile(path) as table:
        for batch in table.iter_batches(batch_size=ROWS_IN_A_GROUP):
            yield from zip(*map(_values, batch.columns), strict=True)


def _values(column: pa.Array) -> list[Any]:
    """The values of a column; equal strings of a column of few, as of labels, are one object."""
    if column.type != pa.string() or pc.count_distinct(column[:FEW]).as_py() > FEW // 8:
        return column.to_pylist()  # type: ignore[no-any-return]  # pyarrow is not typed
    encoded = column.dictionary_encode()
    known = [*encoded.dictionary.to_pylist(), None]
    return [known[index] for index in encoded.indices.fill_null(len(known) - 1).to_pylist()]
