"""Launchers: where training runs. A launcher starts a job's ranks somewhere; everything else is the same everywhere.

    flow ──job──▶ launcher ──order file──▶ rank 0 … rank N−1 ──▶ job.out: metrics.jsonl, checkpoints, model, result.json
      ◀──── progress, result ──── follows job.out ◀───────────────────────────┘

Success is a job's result file, never an exit code. A launcher holds no state of training: whatever ends, the same job
launched again continues from its checkpoints.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, Self

from pipelines.components import Component
from pipelines.recipe.job import Job, Runtime
from pipelines.training.ranks.failure import forget_failure
from tasks.launchers.following import Attempt, Listener, follow, told_before

ORDER = "scratch/job.json"
"""Of a job, in its folder."""


class Launcher(Component):
    """A place where training runs, and how it is asked for: `training: {launcher: …}` in params.yaml."""

    usual: ClassVar[str] = "local"

    @abstractmethod
    def open(self, root: Path, log: Path) -> AbstractContextManager[Launching]:
        """Get ready to run jobs for the checkout at `root`, with logs named after `log`. Leaving ends what runs.

        Raises StageError where the place does not answer or refuses what is asked for.
        """

    def warm(self, root: Path) -> None:
        """Start what `open` will take over, where that may be done before anything is known of the jobs. Ends with this process."""

    @abstractmethod
    def at_once(self, cores: int, devices: int) -> int:
        """How many jobs of `devices` ranks a node may run side by side, where the flow's machine has `cores` processors."""


class Launching(ABC):
    """An opened launcher. `run` may be called from several threads at once."""

    def __init__(self, root: Path, log: Path) -> None:
        self.root, self.log = root, log
        self._attempts: list[Attempt] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            attempts, self._attempts = self._attempts, []
        for attempt in attempts:
            attempt.end()

    def run(self, job: Job, listener: Listener) -> None:
        """Run `job` and tell `listener`. Raises the CursusError that it met, or StageError when it ended without a result."""
        forget_failure(job.out)
        if told_before(job, listener):
            return
        attempt = self._begin(job, self._order(job))
        with self._lock:
            self._attempts.append(attempt)
        follow(job, attempt, listener)
        with self._lock:
            if attempt in self._attempts:  # not while everything is being ended
                self._attempts.remove(attempt)
        self._ended(attempt)

    def _order(self, job: Job) -> Path:
        """The file from which ranks read what to do, where all of them can read it: beside what they write."""
        order = job.out / ORDER
        order.parent.mkdir(parents=True, exist_ok=True)
        order.write_text(job.model_dump_json(), encoding="utf-8")
        return order

    @abstractmethod
    def _begin(self, job: Job, order: Path) -> Attempt:
        """Start the ranks of `job`, which is written in `order`; does not wait for them."""

    def _ended(self, attempt: Attempt) -> None:  # noqa: B027  # not every place has something to put away
        """An attempt has brought its result."""


def as_begun(out: Path, runtime: Runtime) -> Runtime:
    """`runtime` on the threads with which a job in `out` was begun, where it was interrupted: a sum that is cut into other
    parts rounds differently, and how many threads are free depends on what runs beside it."""
    try:
        before = Job.model_validate_json((out / ORDER).read_bytes()).runtime
    except (FileNotFoundError, ValueError):
        return runtime
    return runtime.model_copy(update={"threads": before.threads}) if before.ranks == runtime.ranks else runtime
