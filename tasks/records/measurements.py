"""Common parts of the records of measured claims and lattices, and of their pages."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.lineage import hardware
from pipelines.lineage.disk import write_text_atomically
from pipelines.reports.elements.wording import difference, measured_in
from tasks.datasets.prepared import Prepared


def dataset_record(prepared: Prepared, examples: Mapping[str, int]) -> dict[str, Any]:
    """The dataset of a measurement, with the number of `examples` in its tables."""
    return {
        "dataset": prepared.name,
        "language": prepared.language,
        "family": prepared.family,
        "examples": examples,
        "digests": prepared.digests,
    }


def cost_record(seconds: Sequence[float], models: int) -> dict[str, Any]:
    """The cost of a measurement: the sum of the steps' `seconds`, the number of `models`, and the machine."""
    return {
        "seconds": round(sum(seconds), 1),
        "models": models,
        "processor": hardware.processor(),
        "cores": os.cpu_count(),
    }


def effect_text(effect: Mapping[str, Any], metric: str) -> str:
    """The difference of a measured effect in the unit of its metric, and the ends of its 95 % interval."""
    ends = f"{difference(effect['low'], metric)}, {difference(effect['high'], metric)}"
    return f"{difference(effect['difference'], metric)} {measured_in(metric)} [{ends}]"


def read_records(folder: Path) -> list[dict[str, Any]]:
    """All records of a folder, sorted by file name."""
    return [*named_records(folder).values()]


def named_records(folder: Path) -> dict[str, dict[str, Any]]:
    """All records of a folder by their file names without `.json`, sorted."""
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("[!.]*.json"))}


def write_record(record: Mapping[str, Any], path: Path, page: Path, render: Callable[[], str]) -> None:
    """Replace the record at `path`, then write what `render` makes of all records to `page`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    write_text_atomically(page, render())
