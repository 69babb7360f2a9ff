"""Tables of the card as CSV, which `dvc plots` draws and compares between commits."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.corpora.evidence.lengths import bin_begins
from pipelines.lineage.disk import write_text_atomically

LENGTHS, LABELS = "lengths.csv", "labels.csv"


def write_plots(home: Path, profile: Mapping[str, Any], summary: Mapping[str, Any]) -> None:
    """Write how many texts of each table begin at a length, and how many examples each label has."""
    lengths = [
        (table, bin_begins(int(number)), texts)
        for table, entry in profile["tables"].items()
        for number, texts in sorted(entry["lengths"].items(), key=lambda item: int(item[0]))
    ]
    labels = [
        (part, label, examples)
        for part, counts in summary.get("examples_of_label", {}).items()
        for label, examples in counts.items()
    ]
    _write(home / LENGTHS, ("table", "characters", "texts"), lengths)
    _write(home / LABELS, ("table", "label", "examples"), labels)


def _write(path: Path, heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(heads)
    writer.writerows(rows)
    write_text_atomically(path, text.getvalue())
