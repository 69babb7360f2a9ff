"""Leakage ledger: which texts of which table overlap which evaluation texts, and what was done about it.

data/prepared/mine/decontaminated/ledger.parquet    one row per text, part and kind of overlap
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.corpora.shards.tables import Row, write_rows

LEDGER = "ledger.parquet"
EXCERPT = 300
"""Characters of an excerpt."""
SHOWN = 5
"""Overlaps that an error message quotes."""
KINDS = ("exact", "ngram", "minhash")
COLUMNS = pa.schema(
    [
        ("excerpt", pa.string()),
        ("table", pa.string()),
        ("source", pa.string()),
        ("part", pa.string()),
        ("evaluation_source", pa.string()),
        ("kind", pa.string()),
        ("overlap", pa.float64()),
        ("evaluation_excerpt", pa.string()),
        ("action", pa.string()),
    ]
)
EVALUATION = pa.schema([("text", pa.string()), ("source", pa.string()), ("part", pa.string())])
"""Schema of the table of evaluation texts that units of work read."""


@dataclass(frozen=True)
class LedgerEntry:
    """Row of the ledger: a text that overlaps an evaluation text.

    `overlap` is 1 for `exact`, the overlap coefficient of n-grams for `ngram`, and the estimated Jaccard index of
    five-word shingles for `minhash`.
    """

    excerpt: str
    table: str
    source: str
    part: str
    evaluation_source: str
    kind: str
    overlap: float
    evaluation_excerpt: str
    action: str

    @property
    def row(self) -> Row:
        """Values in the order of COLUMNS."""
        return astuple(self)


def excerpt(text: str) -> str:
    """Beginning of a text, on one line."""
    return " ".join(text[: 2 * EXCERPT].split())[:EXCERPT]


def write_ledger(path: Path, rows: Iterable[Row]) -> None:
    """Write ledger rows in the given order."""
    write_rows(path, COLUMNS, rows)


def totals(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Number of texts of each table that overlap each part, by kind and action."""
    names = ("table", "part", "kind", "action")
    columns = [COLUMNS.get_field_index(name) for name in names]
    counts = Counter(tuple(row[column] for column in columns) for row in rows)
    return [dict(zip(names, key, strict=True)) | {"texts": count} for key, count in sorted(counts.items())]


def overlap_message(dataset: str, rows: Iterable[Row]) -> str:
    """Error message for plain text that overlaps evaluation texts, with counts and examples."""
    rows = list(rows)
    counts = ", ".join(f"{each['texts']} {each['table']}/{each['part']} ({each['kind']})" for each in totals(rows))
    shown = [LedgerEntry(*row) for row in rows[:SHOWN]]
    examples = "".join(
        f"\n{each.source} overlaps {each.evaluation_source} ({each.kind} {each.overlap:.2f}): {each.excerpt[:100]}"
        for each in shown
    )
    return (
        f"{dataset}: plain text overlaps validation or test: {counts}; remove it from the sources, or set "
        f"datasets.{dataset}.decontaminate.action to drop or warn{examples}"
    )
