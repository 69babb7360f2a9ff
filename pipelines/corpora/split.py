"""Draw the labelled training examples and write the six tables that training reads, with a summary of how they came."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from pipelines.corpora.collect import check_labels
from pipelines.corpora.drawing import drawn
from pipelines.corpora.settings import load_dataset
from pipelines.corpora.step import prepared, run_step
from pipelines.corpora.tables import TEXTS, Row, example_of, labelled, origin, read_rows, write_rows
from pipelines.corpora.task_settings import has_classes
from pipelines.corpora.writing import read_json, write_json
from pipelines.errors import DataError
from pipelines.task_families import TaskFamily

EXAMPLES_SHOWN = 3


def split(dataset: str, root: Path) -> None:
    """Write the six tables and summary.json. DataError when a class, or the whole task, has too few examples left."""
    settings = load_dataset(dataset, root)
    task, family = settings.task, settings.task.family
    home = prepared(dataset, root)
    before = home / "decontaminated"
    rows = list(read_rows(before / "task.parquet"))
    examples = {part: [row for row in rows if row[-1] == part] for part in ("train", "validation", "test")}
    check_labels({part: [example_of(family, row) for row in found] for part, found in examples.items()}, family)
    for part in ("validation", "test"):
        if not examples[part]:
            raise DataError(f"{dataset}: nothing of the {part} split is left; give it more examples")
    learned = [example_of(family, row) for row in examples["train"]]
    kept = drawn(learned, family, task.labels_per_class, task.labelled_examples)
    train = [row for number, row in enumerate(examples["train"]) if number in kept]
    others = [row for number, row in enumerate(examples["train"]) if number not in kept]
    unlabelled = [(row[0], row[-2]) for row in [*(row for row in rows if row[-1] == "unlabelled"), *others]]
    of_task = labelled(family)
    tables: dict[str, tuple[Any, Any]] = {
        "general": (TEXTS, read_rows(before / "general.parquet")),
        "domain": (TEXTS, read_rows(before / "domain.parquet")),
        "task_text": (TEXTS, unlabelled or [(row[0], row[-2]) for row in train]),
        "train": (of_task, [row[:-1] for row in train]),
        "validation": (of_task, [row[:-1] for row in examples["validation"]]),
        "test": (of_task, [row[:-1] for row in examples["test"]]),
    }
    with tempfile.TemporaryDirectory(prefix=".split-", dir=home) as aside:
        counts = {name: write_rows(Path(aside, f"{name}.parquet"), *table) for name, table in tables.items()}
        for name in tables:
            os.replace(Path(aside, f"{name}.parquet"), home / f"{name}.parquet")
    summary = {
        "dataset": dataset,
        "language": settings.language,
        "family": family.name,
        "labels": family.labels([example_of(family, row) for row in train]),
        "tables": counts,
        "examples_of_label": {name: _by_label(tables[name][1], family) for name in examples},
        "task_text_from": "unlabelled texts" if unlabelled else "training texts",
        "shown": [
            {name: value[:300] if isinstance(value, str) else value for name, value in example_of(family, row).items()}
            | {origin(family): row[-2]}
            for row in train[:EXAMPLES_SHOWN]
        ],
        "steps": read_json(before / "counts.json"),
    }
    write_json(home / "summary.json", summary)


def _by_label(rows: list[Row], family: TaskFamily) -> dict[str, int]:
    """How many rows have each class; nothing where a family has no classes."""
    if not has_classes(family):
        return {}
    return dict(sorted(Counter(example_of(family, row)["label"] for row in rows).items()))


if __name__ == "__main__":
    run_step(split)
