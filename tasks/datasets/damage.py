"""Detection of damaged tables: DVC compares times and sizes, and a flipped bit changes neither.

Runs before training on a dataset and reads each table once. A damaged table is deleted, together with its copy in DVC's
cache, which may be the same bytes on disk; `dvc repro` then recreates it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pipelines.corpora.shards.digests import dvc_digest
from tasks.datasets.prepared import Prepared


def damaged(dataset: Prepared) -> list[str]:
    """Outputs with tables whose content differs from its recorded digest, relative to the dataset's folder."""
    return [name for name, digest in dataset.outputs.items() if dvc_digest(dataset.folder / name) != digest]


def discard(dataset: Prepared, name: str, root: Path) -> None:
    """Delete a damaged output, and the damaged files of its copy in DVC's cache."""
    table, digest = dataset.folder / name, dataset.outputs[name]
    copies = [_cached(root, entry["md5"]) for entry in _listed(_cached(root, digest))] or [_cached(root, digest)]
    for copy in copies:
        if copy.exists() and dvc_digest(copy) != "".join(copy.parts[-2:]):
            copy.unlink()
    shutil.rmtree(table) if table.is_dir() else table.unlink()


def _cached(root: Path, digest: str) -> Path:
    return root / ".dvc" / "cache" / "files" / "md5" / digest[:2] / digest[2:]


def _listed(folder: Path) -> list[dict[str, Any]]:
    """The files of a folder, as listed in DVC's cache; empty for a table of one file."""
    if folder.suffix != ".dir":
        return []
    try:
        files: list[dict[str, Any]] = json.loads(folder.read_bytes())
    except (OSError, ValueError):
        folder.unlink(missing_ok=True)
        return []
    return files
