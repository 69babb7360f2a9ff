"""Which rows of a labelled table stand elsewhere in their set, so that a score on the clean ones can be given.

    decontaminated/leaks.parquet       every such row, by the part it overlaps and how
    test.parquet                       its schema's metadata has `leaked`: the places of those rows, as JSON

They ride on the table itself, so whoever is given it has them, and they are part of its identity. A set that was not kept as
published has none: what overlapped went.
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


def with_leaked_rows(schema: pa.Schema, decontaminated: Path, part: str) -> pa.Schema:
    """The schema of the table `part` with the places of its rows that leaked, if any did."""
    found = pq.read_table(decontaminated / LEAKS, columns=["part", "row"]).to_pylist()
    rows = sorted({row["row"] for row in found if row["part"] == part})
    return schema.with_metadata({LEAKED: json.dumps(rows)}) if rows else schema


def leaked_rows(table: Path) -> list[int]:
    """The places of the rows of a labelled table that stand elsewhere in its set."""
    metadata = pq.read_schema(table).metadata or {}
    found: list[int] = json.loads(metadata.get(LEAKED, b"[]"))
    return found
