"""The artifact store: one immutable folder per fingerprint. Only this module decides whether a result is cached.

data/store/<fingerprint>/            a finished artifact; provenance.json was written last
data/store/.work/<fingerprint>/      an unfinished one: kept after a crash, so that training resumes from it
data/store/.work/<fingerprint>.lock  held by the process that computes it: others wait, and use what it publishes
data/store/.tokens/<key>/            a tokenised corpus, which any stage can compute again
data/store/.lock                     held shared by executions, exclusively while artifacts are removed
data/store/.reproduced/              stores of `cursus reproduce`: kept where something in them differs
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pipelines.errors import StoreError
from pipelines.lineage.disk import flush, write_text_atomically
from pipelines.lineage.fingerprint import digest_file
from pipelines.lineage.locks import Lock
from pipelines.lineage.provenance import RECORD, FileDigest, Provenance, is_fingerprint
from pipelines.lineage.results import RESULT, SCRATCH


@dataclass(frozen=True)
class Artifact:
    """A finished, verified result."""

    folder: Path
    provenance: Provenance

    @property
    def fingerprint(self) -> str:
        return self.provenance.fingerprint


class Store:
    """Artifacts on disk under `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, fingerprint: str) -> Path:
        """Folder of an artifact, whether it exists or not. Raises StoreError for any name that is not a fingerprint."""
        if not is_fingerprint(fingerprint):
            raise StoreError(f"{self.root}: {fingerprint!r} is no fingerprint (64 hex digits); see `cursus lineage`")
        return self.root / fingerprint

    def get(self, fingerprint: str) -> Artifact | None:
        """The artifact, if it exists and every file still has the digest it was published with; else None.

        Raises StoreError for an artifact whose record or files were changed or lost: using it would give wrong results,
        and deleting it silently would hide that something edits the store.
        """
        folder = self.folder(fingerprint)
        return _verified(folder) if folder.exists() else None

    def find(self, prefix: str) -> Artifact:
        """The one artifact whose fingerprint starts with `prefix`. Raises StoreError when none or several do."""
        # names first: reading every folder of a large store takes seconds
        named = [name for name in _listed(self.root) if name.startswith(prefix) and is_fingerprint(name)]
        matches = sorted(name for name in named if (self.root / name / RECORD).exists())
        if len(matches) != 1:
            what = f"{len(matches)} artifacts start" if matches else "no artifact starts"
            raise StoreError(f"{self.root}: {what} with {prefix!r}; give more digits, or see `cursus lineage`")
        artifact = self.get(matches[0])
        assert artifact is not None
        return artifact

    def fingerprints(self) -> set[str]:
        """The fingerprints of all finished artifacts, from folder names alone: fast in a large store too."""
        return {name for name in _listed(self.root) if is_fingerprint(name)}

    def all(self, among: Collection[str] | None = None) -> Iterator[Provenance]:
        """The records of all finished artifacts, or of those in `among`, oldest first. Files are not verified.

        Every record is read: 3 s in a store of ten thousand.
        """
        names = self.fingerprints() if among is None else among
        records = [Provenance.read(self.root / name) for name in names if (self.root / name / RECORD).exists()]
        yield from sorted(records, key=lambda record: (record.environment.started, record.fingerprint))

    def workspace(self, fingerprint: str) -> Path:
        """The folder in which the result of `fingerprint` is computed; its content survives a crash, for resuming."""
        folder = self.root / ".work" / self.folder(fingerprint).name
        try:
            (folder / SCRATCH).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _disk_error(folder, error) from error
        return folder

    @property
    def tokens(self) -> Path:
        """The folder of the tokenised corpora that stages share."""
        return self.root / ".tokens"

    def publish(self, provenance: Provenance) -> Artifact:
        """Turn the workspace of `provenance.fingerprint` into an artifact, in one rename.

        Everything is flushed to disk first and the record is written last, so a crash at any moment leaves either a
        workspace with its result, or a whole artifact, or one that `claim` completes. The `files` of the given record
        are replaced by those of the workspace. Raises StoreError when the disk is full.
        """
        work = self.workspace(provenance.fingerprint)
        try:
            files = {}
            for path in sorted(path for path in work.rglob("*") if path.is_file()):
                name = path.relative_to(work)
                if name.parts[0] not in (SCRATCH, RESULT, RECORD):
                    flush(path)
                    files[name.as_posix()] = FileDigest(sha256=digest_file(path), bytes=path.stat().st_size)
            for folder in sorted({parent for name in files for parent in Path(name).parents} - {Path()}):
                flush(work / folder)
            sealed = provenance.model_copy(update={"files": files}).sealed()
            write_text_atomically(work / RECORD, sealed.to_json(), work / SCRATCH / RECORD, flushed=True)
            return self._move(work)
        except OSError as error:
            raise _disk_error(work, error) from error

    def claim(self, fingerprint: str) -> Lock | None:
        """The lock that permits computing `fingerprint`, until it is released; None while another process holds it.

        A workspace that a crash left between writing the record and the rename becomes an artifact first.
        """
        work = self.root / ".work" / fingerprint
        try:
            lock = Lock.take(self.root / ".work" / f"{fingerprint}.lock")
            if lock is not None and (work / RECORD).exists() and not (work / RESULT).exists():
                try:
                    _verified(work)
                    self._move(work)
                except StoreError:
                    (work / RECORD).unlink()  # no result: it is computed again
            return lock
        except OSError as error:
            raise _disk_error(self.root, error) from error

    def _move(self, work: Path) -> Artifact:
        """Rename a workspace with a record to its artifact folder.

        Its result file is deleted last: a workspace with a record and no result is complete.
        """
        shutil.rmtree(work / SCRATCH, ignore_errors=True)
        (work / RESULT).unlink(missing_ok=True)
        flush(work)
        target = self.root / work.name
        os.replace(work, target)
        flush(self.root)
        return Artifact(target, Provenance.read(target))

    @contextmanager
    def shared(self, notify: Callable[[str], None]) -> Iterator[None]:
        """Hold the store shared, to compute into it. While it is held exclusively, waits and passes a message to
        `notify`."""
        with self._locked(True, "artifacts are being removed from this store; waiting for that to end", notify):
            yield

    @contextmanager
    def exclusive(self, notify: Callable[[str], None]) -> Iterator[None]:
        """Hold the store exclusively. While executions are using it, waits for all of them to end and passes a message
        to `notify`."""
        with self._locked(False, "a run is using this store; waiting for it to end", notify):
            yield

    @contextmanager
    def _locked(self, shared: bool, reason: str, notify: Callable[[str], None]) -> Iterator[None]:
        path = self.root / ".lock"
        try:
            lock = Lock.take(path, shared=shared)
            if lock is None:
                notify(f"{self.root}: {reason}")
                lock = Lock.take(path, shared=shared, wait=True)
        except OSError as error:
            raise _disk_error(self.root, error) from error
        assert lock is not None
        try:
            yield
        finally:
            lock.release()


def require_space(folder: Path, needed: int) -> None:
    """Raise StoreError when the disk that holds `folder` has less than `needed` bytes free."""
    existing = next(parent for parent in (folder, *folder.resolve().parents) if parent.exists())
    free = shutil.disk_usage(existing).free
    if free < needed:
        raise StoreError(
            f"{existing}: {free / 2**20:,.0f} MiB free, about {needed / 2**20:,.0f} MiB needed; free some space, then "
            "run again: what is finished is kept"
        )


def _listed(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def _verified(folder: Path) -> Artifact:
    """The artifact in `folder`.

    Raises StoreError where its record or one of its files differs from what was published.
    """
    provenance = Provenance.read(folder)
    for name, recorded in provenance.files.items():
        path = folder / name
        if not path.exists() or path.stat().st_size != recorded.bytes or digest_file(path) != recorded.sha256:
            raise StoreError(
                f"{path}: differs from what was published; delete the folder {folder} and run again to rebuild it"
            )
    return Artifact(folder, provenance)


def _disk_error(folder: Path, error: OSError) -> StoreError:
    if error.errno == errno.ENOSPC:
        return StoreError(f"{folder}: no space left on the disk; free some, then run again: what is finished is kept")
    return StoreError(f"{folder}: cannot be written ({error.strerror})")
