"""Atomic writes: folders and JSON files are written under a temporary name and moved when complete.

with replaced_atomically(root / "data/prepared/mine/cleaned") as folder:
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

from pipelines.lineage.disk import unique_temporary_path, write_text_atomically


@contextmanager
def replaced_atomically(destination: Path) -> Iterator[Path]:
    """A temporary folder that replaces `destination` when the block succeeds, and is deleted otherwise."""
    destination.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{destination.name}-", dir=destination.parent))
    try:
        yield temporary
        os.chmod(temporary, 0o755)  # mkdtemp creates folders for one user only
        shutil.rmtree(destination, ignore_errors=True)
        os.replace(temporary, destination)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_json(path: Path, value: Any) -> None:
    """Write sorted, indented JSON to `path` atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    write_text_atomically(path, text, unique_temporary_path(path))


def read_json(path: Path) -> Any:
    """Read the value in a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))
