"""Finished work at the time of a fault, and whether all of it is present and correct at the end."""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines.lineage.provenance import RECORD, Provenance
from pipelines.lineage.results import METRICS, RESULT
from pipelines.lineage.store import Store
from pipelines.lineage.upkeep import flaws

_CHECKPOINT = re.compile(r"step-(\d{9})-[0-9a-f]{64}\.ckpt")


@dataclass(frozen=True)
class Made:
    """An artifact: its label, the digests of its files, and the part of its record that does not vary among runs."""

    label: str
    files: dict[str, str]
    stable: dict[str, Any]


def made_in(store: Store) -> dict[str, Made]:
    """All artifacts of a store, by fingerprint."""
    artifacts = {}
    for record in store.all():
        stable = record.model_dump(mode="json", exclude={"environment", "seal"})
        digests = {name: file.sha256 for name, file in record.files.items()}
        artifacts[record.fingerprint] = Made(f"{record.stage}@{record.seed}", digests, stable)
    return artifacts


class Held:
    """A file that is held open, so that its inode is not reused."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_RDONLY)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            os.close(self._file)

    def is_now(self, path: Path) -> bool:
        """Whether the file at `path` is this one."""
        return path.exists() and os.path.samestat(os.fstat(self._file), path.stat())


@dataclass
class Snapshot:
    """The finished work at one moment."""

    published: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Identity of the record's file (inode and modification time), by fingerprint."""
    results: dict[str, int] = field(default_factory=dict)
    """Inode of a result file, by fingerprint of a step that has its result and is not published."""
    checkpoints: dict[str, int] = field(default_factory=dict)
    """Optimizer step of the newest checkpoint, by fingerprint of an unfinished step."""
    begun: bool = False
    """Whether any step had been begun."""
    logs: dict[str, Held] = field(default_factory=dict)
    """Metrics files of unfinished steps, held open: a restarted step creates another file."""

    @classmethod
    def of(cls, store: Store) -> Snapshot:
        """The present content of `store`."""
        snapshot = cls()
        for record in store.root.glob(f"[0-9a-f]*/{RECORD}"):
            snapshot.published[record.parent.name] = _identity(record)
        snapshot.begun = bool(snapshot.published)
        for work in (store.root / ".work").glob("[0-9a-f]*"):
            snapshot.begun = True
            with suppress(FileNotFoundError):  # it is being published at this moment
                if (work / RESULT).exists() and (one := _file_of(work)) is not None:
                    snapshot.results[work.name] = one.stat().st_ino
            if steps := _steps_of_checkpoints(work):
                snapshot.checkpoints[work.name] = max(steps)
                with suppress(FileNotFoundError):
                    snapshot.logs[work.name] = Held(work / METRICS)
        return snapshot

    def forget(self, fingerprint: str) -> None:
        """Remove a deliberately damaged step from the finished work."""
        for known in (self.published, self.results, self.checkpoints):
            known.pop(fingerprint, None)

    def __len__(self) -> int:
        return len(self.published) + len(self.results) + len(self.checkpoints)

    def __str__(self) -> str:
        unfinished = ", ".join(f"step {step}" for step in self.checkpoints.values())
        return f"{len(self.published)} published" + (f", checkpoint of {unfinished}" if unfinished else "")


def _steps_of_checkpoints(work: Path) -> list[int]:
    """Optimizer steps of the checkpoints in a folder, which a running process may be emptying at the same time."""
    # os.walk passes over a folder that is gone; Path.rglob raises FileNotFoundError
    names = (name for _, _, files in os.walk(work) for name in files)
    return [int(named[1]) for name in names if (named := _CHECKPOINT.fullmatch(name))]


def lost(before: Snapshot, later: list[Snapshot], store: Store) -> list[str]:
    """Work in `before` that was computed again, according to the `later` snapshots and the final state, which is the
    present."""
    problems = []
    now = Snapshot.of(store)
    records = {record.fingerprint: record for record in store.all()}
    for name, identity in before.published.items():
        if now.published.get(name) != identity:
            problems.append(f"{_label(records, name)}: was published and was computed again")
    for name, inode in before.results.items():
        if name not in records or (one := _file_of(store.root / name)) is None or one.stat().st_ino != inode:
            problems.append(f"{_label(records, name)}: had its result and was computed again")
    for name, step in before.checkpoints.items():
        if name in before.results:
            continue
        seen = [one.checkpoints[name] for one in later if name in one.checkpoints]
        record = records.get(name)
        resumed = record.environment.resumed_from_step if record else None
        if (
            record is not None
            and resumed is None
            and name in before.logs
            and before.logs[name].is_now(store.root / name / METRICS)
        ):
            continue  # its process was not affected by the fault
        if any(other < step for other in seen) or record is None or (resumed or 0) < step:
            problems.append(f"{_label(records, name)}: had a checkpoint of step {step}, resumed from {resumed}")
    return problems


def wrong(expected: dict[str, Made], checkout: Path, store: Store) -> list[str]:
    """Differences between the final state of a disturbed run and that of an undisturbed one."""
    problems = list(flaws(store))
    made = made_in(store)
    for name, one in expected.items():
        if name not in made:
            problems.append(f"{one.label}: is missing")
            continue
        for file in sorted({*one.files, *made[name].files}):
            if one.files.get(file) != made[name].files.get(file):
                problems.append(f"{one.label}: {file} differs from that of an undisturbed run")
        for key, value in one.stable.items():
            if made[name].stable[key] != value and key != "files":
                problems.append(f"{one.label}: {RECORD} differs from that of an undisturbed run in {key}")
    problems += [
        f"{made[name].label} {name[:8]}: an undisturbed run does not create it" for name in made.keys() - expected
    ]
    if not list((checkout / "reports").glob("*/report.html")):
        problems.append("there is no report")
    return problems


def unrecorded(expected: dict[str, Made], checkout: Path, registered: bool) -> list[str]:
    """Errors in MLflow's records: a run in state RUNNING, a missing artifact or registered model."""
    with closing(sqlite3.connect(checkout / ".cursus" / "mlflow.db")) as database:
        running = database.execute("select name from runs where status = 'RUNNING' and lifecycle_stage = 'active'")
        problems = [f"MLflow: the run {name} is still in state RUNNING" for (name,) in running]
        recorded = database.execute(
            "select f.value from runs r join tags f on f.run_uuid = r.run_uuid and f.key = 'cursus.fingerprint' "
            "join tags c on c.run_uuid = r.run_uuid and c.key = 'cursus.cached' and c.value = 'false' "
            "where r.status = 'FINISHED' and r.lifecycle_stage = 'active'"
        ).fetchall()
    known = {fingerprint for (fingerprint,) in recorded}
    problems += [f"MLflow: has no record of {one.label}" for name, one in expected.items() if name not in known]
    return [*problems, "MLflow: no model is registered"] if registered and not registered_models(checkout) else problems


def registered_models(checkout: Path) -> int:
    """Number of model versions in MLflow's registry."""
    with closing(sqlite3.connect(checkout / ".cursus" / "mlflow.db")) as database:
        return int(database.execute("select count(*) from model_versions").fetchone()[0])


def _identity(path: Path) -> tuple[int, int]:
    stat = path.stat()
    return stat.st_ino, stat.st_mtime_ns


def _file_of(folder: Path) -> Path | None:
    """A result file that publishing does not change."""
    names = sorted(path for path in folder.glob("*") if path.is_file() and path.name not in (RECORD, RESULT))
    return names[0] if names else None


def _label(records: dict[str, Provenance], name: str) -> str:
    return records[name].stage if name in records else name[:12]
