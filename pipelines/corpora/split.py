"""Draw the labelled training examples and write the six tables that training reads, with a summary of how they came."""

from __future__ import annotations

import os
import tempfile
from collections import Counter, defaultdict
from hashlib import sha256
from pathlib import Path
from typing import Any

from pipelines.corpora.collect import check_labels
from pipelines.corpora.settings import load_dataset
from pipelines.corpora.step import prepared, run_step
from pipelines.corpora.tables import LABELLED, TEXTS, Row, read_rows, write_rows
from pipelines.corpora.writing import read_json, write_json
from pipelines.errors import DataError

EXAMPLES_SHOWN = 3


def split(dataset: str, root: Path) -> None:
    """Write the six tables and summary.json. DataError when a class has too few examples left."""
    settings = load_dataset(dataset, root)
    home = prepared(dataset, root)
    before = home / "decontaminated"
    rows = list(read_rows(before / "task.parquet"))
    check_labels([row for row in rows if row[3] != "unlabelled"])
    parts: dict[str, list[Row]] = {
        part: [row[:3] for row in rows if row[3] == part] for part in ("train", "validation", "test", "unlabelled")
    }
    for part in ("validation", "test"):
        if not parts[part]:
            raise DataError(f"{dataset}: nothing of the {part} split is left; give it more examples")
    train, others = drawn(parts["train"], settings.task.labels_per_class)
    unlabelled = [(text, source) for text, _, source in [*parts["unlabelled"], *others]]
    tables: dict[str, tuple[Any, Any]] = {
        "general": (TEXTS, read_rows(before / "general.parquet")),
        "domain": (TEXTS, read_rows(before / "domain.parquet")),
        "task_text": (TEXTS, unlabelled or [(text, source) for text, _, source in train]),
        "train": (LABELLED, train),
        "validation": (LABELLED, parts["validation"]),
        "test": (LABELLED, parts["test"]),
    }
    with tempfile.TemporaryDirectory(prefix=".split-", dir=home) as aside:
        counts = {name: write_rows(Path(aside, f"{name}.parquet"), *table) for name, table in tables.items()}
        for name in tables:
            os.replace(Path(aside, f"{name}.parquet"), home / f"{name}.parquet")
    summary = {
        "dataset": dataset,
        "language": settings.language,
        "labels": sorted({row[1] for row in train}),
        "tables": counts,
        "examples_of_label": {name: _by_label(tables[name][1]) for name in ("train", "validation", "test")},
        "task_text_from": "unlabelled texts" if unlabelled else "training texts",
        "shown": [{"label": row[1], "text": row[0][:300], "source": row[2]} for row in train[:EXAMPLES_SHOWN]],
        "steps": read_json(before / "counts.json"),
    }
    write_json(home / "summary.json", summary)


def drawn(rows: list[Row], per_class: int | None) -> tuple[list[Row], list[Row]]:
    """The training examples and the rest: `per_class` of each label (None: all), chosen by their texts' hashes.

    DataError when a label has fewer.
    """
    if per_class is None:
        return rows, []
    of_label: dict[str, list[int]] = defaultdict(list)
    for number in sorted(range(len(rows)), key=lambda number: sha256(rows[number][0].encode()).digest()):
        of_label[rows[number][1]].append(number)
    for label, numbers in sorted(of_label.items()):
        if len(numbers) < per_class:
            raise DataError(
                f"labels_per_class asks for {per_class} examples, but {label!r} has {len(numbers)} left to train on"
            )
    chosen = {number for numbers in of_label.values() for number in numbers[:per_class]}
    train = [row for number, row in enumerate(rows) if number in chosen]
    return train, [row for number, row in enumerate(rows) if number not in chosen]


def _by_label(rows: list[Row]) -> dict[str, int]:
    return dict(sorted(Counter(row[1] for row in rows).items()))


if __name__ == "__main__":
    run_step(split)
