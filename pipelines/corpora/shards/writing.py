"""Nothing half-written: folders and JSON are made beside their place and moved there when they are whole.

with written_aside(root / "data/prepared/mine/cleaned") as folder:
    write_rows(folder / "general.parquet", TEXTS, rows)
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipelines.lineage.disk import one_of_many, write_whole


@contextmanager
def written_aside(destination: Path) -> Iterator[Path]:
    """A new folder beside `destination` that takes its place when the block ends well, or else vanishes."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{destination.name}-", dir=destination.parent))
    try:
        yield aside
        os.chmod(aside, 0o755)  # mkdtemp makes folders for one user only
        shutil.rmtree(destination, ignore_errors=True)
        os.replace(aside, destination)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def write_json(path: Path, value: Any) -> None:
    """Write sorted, indented JSON beside `path` and move it into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    write_whole(path, text, one_of_many(path))


def read_json(path: Path) -> Any:
    """The value in a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
