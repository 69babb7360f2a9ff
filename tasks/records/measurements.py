"""What the records of measured claims and lattices have in common, and the pages made of them."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.lineage import hardware
from pipelines.lineage.disk import write_whole
from tasks.datasets.prepared import Prepared


def data_of(prepared: Prepared, examples: Mapping[str, int]) -> dict[str, Any]:
    """What was measured on, with the number of `examples` in its tables."""
    return {
        "dataset": prepared.name,
        "language": prepared.language,
        "family": prepared.family,
        "examples": examples,
        "digests": prepared.digests,
    }


def cost_of(seconds: Sequence[float], models: int) -> dict[str, Any]:
    """What it took to train and judge so many `models`, of the `seconds` of every step, and on what."""
    return {
        "seconds": round(sum(seconds), 1),
        "models": models,
        "processor": hardware.processor(),
        "cores": os.cpu_count(),
    }


def read_records(folder: Path) -> list[dict[str, Any]]:
    """All records of a folder, by the names of their files."""
    return [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("[!.]*.json"))]


def keep(record: Mapping[str, Any], path: Path, page: Path, render: Callable[[], str]) -> None:
    """Write a record in the place of the one before, then what `render` makes of all into `page`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, json.dumps(record, indent=1, ensure_ascii=False) + "\n")
    write_whole(page, render())
