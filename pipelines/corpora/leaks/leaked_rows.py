"""Rows of a labelled table that also occur in another part of their set, so that scores on the clean rows can be given.

    decontaminated/leaks.parquet       every such row, with the part it overlaps and how
    test.parquet                       the metadata of its schema has `leaked`: the indices of those rows, as JSON

The indices are stored in the table itself: they are available wherever the table is, and they are part of its identity.
A set that was not kept as published has none, since its overlapping rows were dropped.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

LEAKS = "leaks.parquet"
LEAKS_COLUMNS = pa.schema(
    [
        ("source", pa.string()),
        ("part", pa.string()),
        ("row", pa.int64()),
        ("kind", pa.string()),
        ("overlap", pa.float64()),
        ("other_part", pa.string()),
        ("other_source", pa.string()),
    ]
)
LEAKED = b"leaked"
"""Key of the schema metadata."""


def with_leaked_rows(schema: pa.Schema, decontaminated: Path, part: str) -> pa.Schema:
    """Schema of the table `part`, with the indices of its leaked rows if there are any."""
    leaks = pq.read_table(decontaminated / LEAKS, columns=["part", "row"]).to_pylist()
    rows = sorted({row["row"] for row in leaks if row["part"] == part})
    return schema.with_metadata({LEAKED: json.dumps(rows)}) if rows else schema


def leaked_rows(table: Path) -> list[int]:
    """Indices of the rows of a labelled table that also occur in another part of its set."""
    metadata = pq.read_schema(table).metadata or {}
    indices: list[int] = json.loads(metadata.get(LEAKED, b"[]"))
    return indices
