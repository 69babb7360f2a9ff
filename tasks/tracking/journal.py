"""What MLflow is to be told of an execution, on disk before it is told: `.cursus/executions/<id>.jsonl`.

    ExecutionBegan  StepBegan  Measured Measured …  StepFinished  StepCached  …  ExecutionEnded

The execution holds a lock on its journal. One that nobody holds belongs to a process that is gone, or that ended while
MLflow was away: the next execution tells what is in it, and takes it away when all is told. The system lets go of the lock
however the process ends, so that neither a process id given out again nor a clock that jumps is mistaken for life.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pipelines.lineage.locks import Lock
from tasks.environment import state_folder
from tasks.tracking.tracked_values import TrackedStep

Status: TypeAlias = Literal["FINISHED", "FAILED", "KILLED"]
TOGETHER = 200
"""Entries of one step's curves that are told in one call."""


def now() -> int:
    """Milliseconds since the epoch, as MLflow counts time."""
    return time.time_ns() // 1_000_000


class Entry(BaseModel):
    """One thing that happened, and when (milliseconds since the epoch)."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    when: int = Field(default_factory=now)


class ExecutionBegan(Entry):
    """An execution, with the steps that it plans."""

    said: Literal["execution began"] = "execution began"
    execution: str
    recipe: str
    dataset: str
    plan: list[dict[str, Any]]


class StepBegan(Entry):
    """A step is about to train."""

    said: Literal["step began"] = "step began"
    step: TrackedStep


class Measured(Entry):
    """Lines that a step added to its `metrics.jsonl`."""

    said: Literal["measured"] = "measured"
    fingerprint: str
    lines: list[dict[str, Any]]


class Sampled(Entry):
    """What the machine did while a step trained."""

    said: Literal["sampled"] = "sampled"
    fingerprint: str
    numbers: dict[str, float]


class StepFinished(Entry):
    """A step's artifact is in the store, in `folder`."""

    said: Literal["step finished"] = "step finished"
    fingerprint: str
    folder: Path


class StepFailed(Entry):
    """A step ended without a result."""

    said: Literal["step failed"] = "step failed"
    fingerprint: str
    message: str


class StepCached(Entry):
    """A step was in the store already, in `folder`."""

    said: Literal["step cached"] = "step cached"
    folder: Path
    name: str | None


class ReportWritten(Entry):
    """The execution's page."""

    said: Literal["report written"] = "report written"
    page: Path


class ModelsOffered(Entry):
    """Fingerprints of what the execution ends in, to be registered with these scores."""

    said: Literal["models offered"] = "models offered"
    store: Path
    answering: str | None
    body: str | None
    scores: dict[str, float]


class ExecutionEnded(Entry):
    """How the execution ended, with its own few numbers."""

    said: Literal["execution ended"] = "execution ended"
    status: Status
    headline: dict[str, float]


AnyEntry = Annotated[
    ExecutionBegan
    | StepBegan
    | Measured
    | Sampled
    | StepFinished
    | StepFailed
    | StepCached
    | ReportWritten
    | ModelsOffered
    | ExecutionEnded,
    Field(discriminator="said"),
]
_ENTRY: TypeAdapter[Entry] = TypeAdapter(AnyEntry)


class Journal:
    """The journal of one execution, held by this process."""

    def __init__(self, path: Path, lock: Lock) -> None:
        self.path, self._lock = path, lock

    @property
    def execution(self) -> str:
        """Whose journal it is."""
        return self.path.stem

    @classmethod
    def begin(cls, root: Path, execution: str) -> Self:
        """A new journal. Raises OSError where it cannot be written."""
        path = _folder(root) / f"{execution}.jsonl"
        lock = Lock.take(path, wait=True)
        assert lock is not None
        return cls(path, lock)

    @classmethod
    def abandoned(cls, root: Path) -> Iterator[Self]:
        """The journals that no process holds, oldest first; each is held until it is let go."""
        for path in sorted(_folder(root).glob("*.jsonl")):
            lock = Lock.take(path)
            if lock is not None:
                yield cls(path, lock)

    def write(self, entry: Entry) -> None:
        """Add an entry. Raises OSError where the disk is full."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(entry.model_dump_json() + "\n")

    def entries(self) -> list[Entry]:
        """All entries. What a killed process left half-written, or a full disk cut off, is passed over."""
        return list(_read(self.path))

    def release(self) -> None:
        """Leave it to the next execution."""
        self._lock.release()

    def forget(self) -> None:
        """Everything in it has been told."""
        self._lock.release(forget=True)

    def refuse(self) -> Path:
        """Put it aside, where nobody tells it again; where it is now."""
        aside = self.path.with_suffix(".refused")
        self.path.rename(aside)
        self._lock.release()
        return aside


def steps_under_way(root: Path) -> set[str]:
    """Fingerprints of the steps that executions have begun, and will tell of themselves."""
    entries = (entry for path in _folder(root).glob("*.jsonl") for entry in _read(path))
    return {entry.step.fingerprint for entry in entries if isinstance(entry, StepBegan)}


def settle(root: Path, execution: str) -> None:
    """Note that MLflow has been told everything of `execution`. Nothing is noted on a full disk: then it is told again."""
    with suppress(OSError):
        _folder(root).mkdir(parents=True, exist_ok=True)
        (_folder(root) / f"{execution}.told").touch()


def settled(root: Path, execution: str) -> bool:
    """Whether MLflow has been told everything of `execution`. Where a disk was full, not even a journal says that it was not."""
    return (_folder(root) / f"{execution}.told").exists()


def untold(root: Path) -> bool:
    """Whether executions left something that MLflow has not been told."""
    return any(_folder(root).glob("*.jsonl"))


def offered(root: Path) -> set[str]:
    """Fingerprints that wait to be registered until MLflow answers."""
    entries = (entry for path in _folder(root).glob("*.jsonl") for entry in _read(path))
    models = (entry for entry in entries if isinstance(entry, ModelsOffered))
    return {named for entry in models for named in (entry.answering, entry.body) if named is not None}


def batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Entries in their order, those of one step's curves together."""
    for _, run in groupby(entries, lambda entry: curve(entry) or id(entry)):
        several = list(run)
        yield from (several[start : start + TOGETHER] for start in range(0, len(several), TOGETHER))


def curve(entry: Entry) -> str | None:
    """The step whose curves the entry adds to, if it does."""
    return entry.fingerprint if isinstance(entry, (Measured, Sampled)) else None


def _read(path: Path) -> Iterator[Entry]:
    try:
        lines = path.read_bytes().splitlines()
    except FileNotFoundError:
        return
    for line in lines:
        try:
            yield _ENTRY.validate_json(line)
        except ValidationError:
            continue


def _folder(root: Path) -> Path:
    return state_folder(root) / "executions"
