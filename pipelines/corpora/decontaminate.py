"""Take away training text that overlaps validation or test, and validation text that overlaps test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipelines.corpora.overlap import OverlapIndex
from pipelines.corpora.settings import load_dataset
from pipelines.corpora.step import prepared, run_step
from pipelines.corpora.tables import TEXTS, Row, labelled_parts, read_rows, write_rows
from pipelines.corpora.writing import read_json, write_json, written_aside
from pipelines.errors import DataError


def decontaminate(dataset: str, root: Path) -> None:
    """Write `decontaminated/` from `deduplicated/`. DataError when nothing of a table is left."""
    everything = load_dataset(dataset, root)
    settings, family = everything.decontaminate, everything.task.family
    before = prepared(dataset, root) / "deduplicated"
    history = read_json(before / "counts.json")
    dropped: Counter[str] = Counter()
    task = list(read_rows(before / "task.parquet"))
    test = OverlapIndex((row[0] for row in task if row[-1] == "test"), settings.words)
    task = list(apart(task, "validation", test, settings.overlap, dropped))
    evaluation = OverlapIndex((row[0] for row in task if row[-1] in ("validation", "test")), settings.words)
    for part in ("train", "unlabelled"):
        task = list(apart(task, part, evaluation, settings.overlap, dropped))
    with written_aside(prepared(dataset, root) / "decontaminated") as folder:
        tables = {
            "task": write_rows(folder / "task.parquet", labelled_parts(family), task) | {"dropped": dict(dropped)}
        }
        for name in ("domain", "general"):
            dropped = Counter()
            rows = apart(read_rows(before / f"{name}.parquet"), None, evaluation, settings.overlap, dropped)
            tables[name] = write_rows(folder / f"{name}.parquet", TEXTS, rows) | {"dropped": dict(dropped)}
            if not tables[name]["documents"]:
                raise DataError(f"{dataset}: every text of {name!r} overlaps validation or test; give it other sources")
        write_json(folder / "counts.json", [*history, {"step": "decontaminate", "tables": tables}])


def apart(
    rows: Iterable[Row], part: str | None, index: OverlapIndex, overlap: float, dropped: Counter[str]
) -> Iterator[Row]:
    """The rows without those of `part` (None: any row) whose overlap with a text of the index reaches `overlap`."""
    for row in rows:
        if (part is None or row[-1] == part) and index.overlap(row[0]) >= overlap:
            dropped[f"{part}: overlap" if part else "overlap"] += 1
        else:
            yield row


if __name__ == "__main__":
    run_step(decontaminate)
