"""Keeping a store: is everything in it whole, and what may go?

for flaw in flaws(store): print(flaw)
unneeded(store, roots)              # what none of the `roots` needs, with sizes
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
class Kept:
    """A finished artifact, or a workspace that no result came of."""

    fingerprint: str
    what: str
    """`classify@0` of its recipe, or that it is unfinished."""
    folder: Path
    bytes: int


def flaws(store: Store) -> Iterator[str]:
    """What is wrong with each artifact that is not as it was published: a changed or missing file, a damaged record, a
    name that is not that of its identity, a parent that is missing. Every file is read."""
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
    """The fingerprints of `roots` and of everything they were made from. Raises StoreError for one that is not there."""
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += Provenance.read(store.folder(name)).parents.values()
    return found


def unneeded(store: Store, roots: Collection[str], younger_than: float) -> list[Kept]:
    """What none of `roots` was made from, and no artifact younger than `younger_than` seconds either.

    Unfinished work goes when nothing in it changed for as long, a tokenised corpus when nothing read it. A root that is not
    in the store needs nothing.
    """
    now = time.time()
    present = {name: Provenance.read(store.root / name) for name in _folders(store)}
    young = [name for name in present if now - (store.root / name / RECORD).stat().st_mtime < younger_than]
    needed = lineage_of(store, [name for name in {*roots, *young} if name in present])
    gone = [
        Kept(name, f"{record.recipe} {record.stage}@{record.seed}", store.root / name, _size(store.root / name))
        for name, record in present.items()
        if name not in needed
    ]
    for folder in sorted((store.root / ".work").glob("*")):
        if folder.is_dir() and now - _touched(folder) >= younger_than:
            gone.append(Kept(folder.name, "unfinished", folder, _size(folder)))
    for folder in sorted(store.tokens.glob("[0-9a-f]*")):  # its time is that of its last use
        if now - folder.stat().st_mtime >= younger_than:
            gone.append(Kept(folder.name, "tokenised corpus", folder, _size(folder)))
    return gone


def remove(store: Store, gone: Collection[Kept]) -> None:
    """Delete what `unneeded` found, while no run uses the store.

    Each artifact is moved out of sight first, so that a kill leaves a whole artifact or none.
    """
    aside = store.root / ".removed"
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    for one in gone:
        os.replace(one.folder, aside / f"{one.folder.parent.name.lstrip('.')}-{one.fingerprint}")
    shutil.rmtree(aside)


def _folders(store: Store) -> list[str]:
    return sorted(folder.name for folder in store.root.glob("[0-9a-f]*") if folder.is_dir())


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _touched(folder: Path) -> float:
    return max((path.stat().st_mtime for path in (folder, *folder.rglob("*"))), default=0.0)
