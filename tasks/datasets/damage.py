"""Tables that a disk has changed behind DVC's back: it looks at times and sizes, and a flipped bit changes neither.

Run before anything is trained on a dataset: each table is read once. What is damaged goes, with its copy in DVC's cache,
which may be the same bytes on the disk; `dvc repro` then makes it again.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tasks.datasets.prepared import Prepared, dvc_digest


def damaged(found: Prepared) -> list[str]:
    """The names of the tables that are not as they were prepared."""
    return [name for name, path in found.tables.items() if dvc_digest(path) != found.digests[name]]


def discard(found: Prepared, name: str, root: Path) -> None:
    """Delete what is damaged of a table, and of its copy in DVC's cache."""
    table, digest = found.tables[name], found.digests[name]
    copies = [_cached(root, entry["md5"]) for entry in _listed(_cached(root, digest))] or [_cached(root, digest)]
    for copy in copies:
        if copy.exists() and dvc_digest(copy) != "".join(copy.parts[-2:]):
            copy.unlink()
    shutil.rmtree(table) if table.is_dir() else table.unlink()


def _cached(root: Path, digest: str) -> Path:
    return root / ".dvc" / "cache" / "files" / "md5" / digest[:2] / digest[2:]


def _listed(folder: Path) -> list[dict[str, Any]]:
    """The files of a folder, as DVC's cache lists them; none for a table of one file."""
    if folder.suffix != ".dir":
        return []
    try:
        files: list[dict[str, Any]] = json.loads(folder.read_bytes())
    except (OSError, ValueError):
        folder.unlink(missing_ok=True)
        return []
    return files
