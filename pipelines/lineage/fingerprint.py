"""The fingerprint of a step: sha256 over the canonical JSON of everything its result depends on."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

LIBRARIES = ("torch", "transformers", "tokenizers", "pytorch-lightning", "numpy")
"""Libraries whose minor version can change a trained weight."""


def fingerprint(identity: dict[str, Any]) -> str:
    """64 hex digits naming `identity`, a JSON value.

    Keys are sorted and floats written in Python's shortest exact form, so equal values give equal fingerprints on any
    machine. Raises TypeError when something in `identity` is not JSON, ValueError for NaN or infinity.
    """
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def library_versions(names: Iterable[str] = LIBRARIES) -> dict[str, str]:
    """Python's and the libraries' `major.minor`: a patch release does not invalidate what was trained."""
    versions = {"python": ".".join(platform.python_version_tuple()[:2])}
    for name in names:
        versions[name] = ".".join(importlib.metadata.version(name).split("+")[0].split(".")[:2])
    return versions


def digest_folder(folder: Path) -> str:
    """sha256 over the names and contents of all files under `folder`: the identity of an imported checkpoint."""
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{digest_file(path)}\0".encode())
    return digest.hexdigest()


def digest_file(path: Path) -> str:
    """sha256 of a file's content, 64 hex digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
