"""Maintenance of a store: verify its artifacts, and delete those that are no longer needed.

for flaw in flaws(store): print(flaw)
unneeded(store, roots)              # folders that none of the `roots` needs, with sizes
remove(store, fingerprints)
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import StoreError
from pipelines.lineage.fingerprint import fingerprint
from pipelines.lineage.provenance import RECORD, Provenance
from pipelines.lineage.store import Store


@dataclass(frozen=True)
class RemovableFolder:
    """A folder of the store that may be deleted: an artifact, an unfinished workspace, or a tokenised corpus."""

    fingerprint: str
    what: str
    """Recipe and step (`regime classify@0`), "unfinished" or "tokenised corpus"."""
    folder: Path
    bytes: int


def flaws(store: Store) -> Iterator[str]:
    """Yield a message for each flaw of an artifact: a changed or missing file, a damaged record, a name that is not the
    fingerprint of its identity, a missing parent. Reads every file."""
    present = set(_folders(store))
    for name in sorted(present):
        try:
            artifact = store.get(name)
        except StoreError as flaw:
            yield str(flaw)
            continue
        folder = store.root / name
        if artifact is None:
            yield f"{folder}: not an artifact, {RECORD} is missing; delete the folder"
            continue
        record = artifact.provenance
        if record.fingerprint != name or fingerprint(record.identity) != name:
            yield f"{folder}: the record is that of another artifact; delete the folder and run again to rebuild it"
        known = {*record.files, RECORD}
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.relative_to(folder).as_posix() not in known:
                yield f"{path}: was added after the artifact was published; move it elsewhere"
        for role, parent in record.parents.items():
            if parent not in present:
                yield f"{folder}: its {role} {parent[:12]} is not in the store; run again to rebuild it"


def lineage_of(store: Store, roots: Collection[str]) -> set[str]:
    """The fingerprints of `roots` and of all their ancestors. Raises StoreError for one that is not in the store."""
    lineage: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in lineage:
            lineage.add(name)
            waiting += Provenance.read(store.folder(name)).parents.values()
    return lineage


def unneeded(store: Store, roots: Collection[str], younger_than: float) -> list[RemovableFolder]:
    """The folders that are no ancestor of any of `roots`, nor of an artifact younger than `younger_than` seconds.

    An unfinished workspace is included when nothing in it has changed for that long, a tokenised corpus when it was not
    read for that long. Roots that are not in the store are ignored.
    """
    now = time.time()
    present = {name: Provenance.read(store.root / name) for name in _folders(store)}
    young = [name for name in present if now - (store.root / name / RECORD).stat().st_mtime < younger_than]
    needed = lineage_of(store, [name for name in {*roots, *young} if name in present])
    gone = [
        RemovableFolder(
            name, f"{record.recipe} {record.stage}@{record.seed}", store.root / name, _size(store.root / name)
        )
        for name, record in present.items()
        if name not in needed
    ]
    for folder in sorted((store.root / ".work").glob("*")):
        if folder.is_dir() and now - _touched(folder) >= younger_than:
            gone.append(RemovableFolder(folder.name, "unfinished", folder, _size(folder)))
    for folder in sorted(store.tokens.glob("[0-9a-f]*")):  # its modification time is that of its last use
        if now - folder.stat().st_mtime >= younger_than:
            gone.append(RemovableFolder(folder.name, "tokenised corpus", folder, _size(folder)))
    return gone


def remove(store: Store, gone: Collection[RemovableFolder]) -> None:
    """Delete the folders that `unneeded` returned, while no run uses the store.

    Each folder is renamed first, so that a kill leaves a whole artifact or none.
    """
    removed = store.root / ".removed"
    shutil.rmtree(removed, ignore_errors=True)
    removed.mkdir(parents=True)
    for one in gone:
        os.replace(one.folder, removed / f"{one.folder.parent.name.lstrip('.')}-{one.fingerprint}")
    shutil.rmtree(removed)


def _folders(store: Store) -> list[str]:
    return sorted(folder.name for folder in store.root.glob("[0-9a-f]*") if folder.is_dir())


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _touched(folder: Path) -> float:
    return max((path.stat().st_mtime for path in (folder, *folder.rglob("*"))), default=0.0)
