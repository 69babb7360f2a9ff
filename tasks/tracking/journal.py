"""The journal of an execution: what MLflow shall record, on disk before it is sent: `.cursus/executions/<id>.jsonl`.

    ExecutionBegan  StepBegan  MetricsMeasured MetricsMeasured …  StepFinished  StepCached  …  ExecutionEnded

The execution holds a lock on its journal. A journal without a lock belongs to a process that was killed, or that ended
while MLflow was unavailable: the next execution sends its entries and then deletes it. The operating system releases
the lock however the process ends, so a reused process id or a clock that jumps cannot make a dead process look alive.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from pipelines.lineage.locks import Lock
from pipelines.lineage.provenance import DataSource
from tasks.tracking.recorded import journals_folder
from tasks.tracking.tracked_values import TrackedStep

Status: TypeAlias = Literal["FINISHED", "FAILED", "KILLED"]
BATCH = 200
"""Most entries of one step's curves that are sent in one call."""
JSON_KEYS = {"event": "said", "backbone": "body"}
"""Attributes whose key in the file is that of journals written before."""


def now() -> int:
    """The time in milliseconds since the epoch, as MLflow counts it."""
    return time.time_ns() // 1_000_000


class Entry(BaseModel):
    """An event of an execution, and when it happened (milliseconds since the epoch)."""

    model_config = ConfigDict(
        frozen=True,
        ser_json_inf_nan="constants",
        alias_generator=lambda name: JSON_KEYS.get(name, name),
        validate_by_name=True,
        serialize_by_alias=True,
    )

    when: int = Field(default_factory=now)


class ExecutionBegan(Entry):
    """An execution began; `plan` lists its steps."""

    event: Literal["execution began"] = "execution began"
    execution: str
    recipe: str
    dataset: str
    plan: list[dict[str, Any]]
    smoke: bool = False
    parameters: dict[str, str] = {}
    """What was requested (`tasks.records.execution_parameters`)."""
    data: dict[str, DataSource] = {}
    """The tables of the dataset."""


class StepBegan(Entry):
    """A step is about to train."""

    event: Literal["step began"] = "step began"
    step: TrackedStep


class MetricsMeasured(Entry):
    """Lines that a step appended to its `metrics.jsonl`."""

    event: Literal["measured"] = "measured"
    fingerprint: str
    lines: list[dict[str, Any]]


class SystemMetricsSampled(Entry):
    """Figures of the machine (`system/…`) while a step trained."""

    event: Literal["sampled"] = "sampled"
    fingerprint: str
    numbers: dict[str, float]


class StepFinished(Entry):
    """A step's artifact is in the store, in `folder`."""

    event: Literal["step finished"] = "step finished"
    fingerprint: str
    folder: Path


class StepFailed(Entry):
    """A step ended without a result."""

    event: Literal["step failed"] = "step failed"
    fingerprint: str
    message: str


class StepCached(Entry):
    """A step was in the store already, in `folder`."""

    event: Literal["step cached"] = "step cached"
    folder: Path
    name: str | None


class ReportWritten(Entry):
    """The execution's HTML report was written."""

    event: Literal["report written"] = "report written"
    page: Path


class ModelsOffered(Entry):
    """Fingerprints of the models that an execution ends in, to be registered with `scores`.

    `answering` is the model that answers the task, `backbone` the pre-trained one below it.
    """

    event: Literal["models offered"] = "models offered"
    store: Path
    answering: str | None
    backbone: str | None
    scores: dict[str, float]
    about: str | None = None
    """Description of the answering model's version, in Markdown."""
    warning: str | None = None
    """Why the answering model is not surely above its baselines; None if it is."""


class ExecutionEnded(Entry):
    """An execution ended with `status` and its headline scores."""

    event: Literal["execution ended"] = "execution ended"
    status: Status
    headline: dict[str, float]
    tags: dict[str, str] = {}
    """What the headline scores are of: `Headline.tags`."""


AnyEntry = Annotated[
    ExecutionBegan
    | StepBegan
    | MetricsMeasured
    | SystemMetricsSampled
    | StepFinished
    | StepFailed
    | StepCached
    | ReportWritten
    | ModelsOffered
    | ExecutionEnded,
    Field(discriminator="event"),
]
_ENTRY: TypeAdapter[Entry] = TypeAdapter(AnyEntry)


class Journal:
    """The journal of one execution, locked by this process."""

    def __init__(self, path: Path, lock: Lock) -> None:
        self.path, self._lock = path, lock

    @property
    def execution(self) -> str:
        """Id of the execution."""
        return self.path.stem

    @classmethod
    def begin(cls, root: Path, execution: str) -> Self:
        """Create and lock a journal. Raises OSError when it cannot be written."""
        path = journals_folder(root) / f"{execution}.jsonl"
        lock = Lock.take(path, wait=True)
        assert lock is not None
        return cls(path, lock)

    @classmethod
    def abandoned(cls, root: Path) -> Iterator[Self]:
        """Lock and yield the journals that no process holds, oldest first; the caller releases each."""
        for path in sorted(journals_folder(root).glob("*.jsonl")):
            lock = Lock.take(path)
            if lock is not None:
                yield cls(path, lock)

    def write(self, entry: Entry) -> None:
        """Append an entry. Raises OSError when the disk is full."""
        with self.path.open("a", encoding="utf-8") as file:
            file.write(entry.model_dump_json() + "\n")

    def entries(self) -> list[Entry]:
        """All entries. Lines that a killed process or a full disk left incomplete are skipped."""
        return list(_read(self.path))

    def release(self) -> None:
        """Unlock the journal, for the next execution to send."""
        self._lock.release()

    def forget(self) -> None:
        """Delete the journal: MLflow has recorded all of it."""
        self._lock.release(delete=True)

    def refuse(self) -> Path:
        """Rename the journal to `.refused`, so that it is not sent again, and return its new path."""
        refused = self.path.with_suffix(".refused")
        self.path.rename(refused)
        self._lock.release()
        return refused


def steps_under_way(root: Path) -> set[str]:
    """Fingerprints of the steps that executions have begun and will record themselves."""
    entries = (entry for path in journals_folder(root).glob("*.jsonl") for entry in _read(path))
    return {entry.step.fingerprint for entry in entries if isinstance(entry, StepBegan)}


def journalled_executions(root: Path) -> set[str]:
    """Ids of the executions that have a journal, in progress or not."""
    return {path.stem for path in journals_folder(root).glob("*.jsonl")}


def pending_models(root: Path) -> set[str]:
    """Fingerprints of models whose registration waits for MLflow."""
    entries = (entry for path in journals_folder(root).glob("*.jsonl") for entry in _read(path))
    models = (entry for entry in entries if isinstance(entry, ModelsOffered))
    return {named for entry in models for named in (entry.answering, entry.backbone) if named is not None}


def batches(entries: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Split entries into batches, in order; consecutive entries of one step's curves share one of at most `BATCH`."""
    for _, run in groupby(entries, lambda entry: curve(entry) or id(entry)):
        several = list(run)
        yield from (several[start : start + BATCH] for start in range(0, len(several), BATCH))


def curve(entry: Entry) -> str | None:
    """Fingerprint of the step whose curves the entry extends; None for any other entry."""
    return entry.fingerprint if isinstance(entry, (MetricsMeasured, SystemMetricsSampled)) else None


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
