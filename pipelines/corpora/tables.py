"""Tables of text on disk: deterministic Parquet, written aside and moved into place.

with written_aside(root / "data/prepared/mine/cleaned") as folder:
    count = write_rows(folder / "general.parquet", TEXTS, rows)

A row of a labelled table is `text`, the family's other columns, and where it stands; while parts are kept together, `part`
is last. Where it stands is the column `source`, or `origin` when the family has a `source` of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.task_families import TaskFamily

ROWS_IN_A_GROUP = 8192

TEXTS = pa.schema([("text", pa.string()), ("source", pa.string())])

Row = tuple[Any, ...]

_TYPES = {
    "string": pa.string(),
    "double": pa.float64(),
    "int64": pa.int64(),
    "list<string>": pa.list_(pa.string()),
    "list<int64>": pa.list_(pa.int64()),
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


def unlabelled_row(family: TaskFamily, text: str, *rest: str) -> Row:
    """A row with a text and nothing else of an example."""
    return (text, *(None for _ in other_columns(family)), *rest)


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
