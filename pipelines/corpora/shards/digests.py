"""Digests of tables, as DVC computes them for its outputs, so that a table inside an output has one of its own.

named/tables.json      {"stsb.train": "5f…", "parallel": "0a….dir"}
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from pipelines.corpora.shards.writing import read_json, write_json
from pipelines.errors import DataError

DIGESTS = "tables.json"
"""File with the digests of the tables beside it."""


def dvc_digest(path: Path) -> str:
    """DVC's digest of a file or folder: an md5; for a folder, that of the list of its files' md5."""
    if path.is_file():
        return _md5(path)
    listed = [{"md5": _md5(file), "relpath": file.relative_to(path).as_posix()} for file in files_of(path)]
    return hashlib.md5(json.dumps(listed, sort_keys=True).encode(), usedforsecurity=False).hexdigest() + ".dir"


def files_of(path: Path) -> list[Path]:
    """A file itself, or all files under a folder, sorted."""
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


def write_digests(folder: Path, tables: Mapping[str, Path]) -> None:
    """Write the digests of `tables`, which are in `folder`, and delete whatever else is there."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = set(tables.values())
    for path in folder.iterdir():
        if path not in kept:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    write_json(folder / DIGESTS, {name: dvc_digest(path) for name, path in tables.items()})


def read_digests(folder: Path) -> dict[str, str]:
    """Read the digests of the tables in `folder`. Raises DataError when they are missing or not readable."""
    try:
        digests: dict[str, str] = read_json(folder / DIGESTS)
    except (OSError, ValueError) as error:
        raise DataError(f"{folder / DIGESTS}: not readable: {error}; delete the folder and prepare it again") from None
    return digests


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
