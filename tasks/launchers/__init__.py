"""Launchers: where training runs. A launcher starts the ranks of a job; everything else is the same for all launchers.

    flow ──job──▶ launcher ──order file──▶ rank 0 … rank N−1 ──▶ job.out: metrics.jsonl, checkpoints, model, result.json
      ◀──── progress, result ──── follows job.out ◀───────────────────────────┘

A job has succeeded when its result file exists; exit codes do not count. A launcher holds no training state: after any
interruption, the same job launched again continues from its checkpoints.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from contextlib import AbstractContextManager
from pathlib import Path
from typing import ClassVar, Self

from pipelines.components import Component
from pipelines.recipe.job import Job, Runtime
from pipelines.training.ranks.failure import clear_failure
from tasks.launchers.following import Attempt, Listener, already_finished, follow

ORDER = "scratch/job.json"
"""The serialised job, in the job's folder."""


class Launcher(Component):
    """A way to run training jobs; configured by `training: {launcher: …}` in params.yaml."""

    default_name: ClassVar[str] = "local"

    @abstractmethod
    def open(self, root: Path, log: Path) -> AbstractContextManager[LauncherSession]:
        """Prepare to run jobs for the checkout at `root`, with logs named after `log`. Exiting the context ends all
        jobs.

        Raises StageError when the cluster does not answer or rejects the settings.
        """

    def warm(self, root: Path) -> None:
        """Start processes that `open` will take over, if possible before the jobs are known. They end with this
        process."""

    @abstractmethod
    def concurrent_jobs(self, cores: int, devices: int) -> int:
        """How many jobs of `devices` ranks per node may run concurrently, if the flow's machine has `cores`
        processors."""


class LauncherSession(ABC):
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
        """Run `job` and report to `listener`. Raises the job's own CursusError, or StageError when it ended without a
        result."""
        clear_failure(job.out)
        if already_finished(job, listener):
            return
        attempt = self._begin(job, self._order(job))
        with self._lock:
            self._attempts.append(attempt)
        follow(job, attempt, listener)
        with self._lock:
            if attempt in self._attempts:  # `__exit__` may have removed it
                self._attempts.remove(attempt)
        self._ended(attempt)

    def _order(self, job: Job) -> Path:
        """Write the job to a file that all ranks can read: in the folder that they write to."""
        order = job.out / ORDER
        order.parent.mkdir(parents=True, exist_ok=True)
        order.write_text(job.model_dump_json(), encoding="utf-8")
        return order

    @abstractmethod
    def _begin(self, job: Job, order: Path) -> Attempt:
        """Start the ranks of `job`, which is serialised in `order`; does not wait for them."""

    def _ended(self, attempt: Attempt) -> None:  # noqa: B027  # not every launcher has something to clean up
        """Clean up after an attempt that has produced its result."""


def resumed_runtime(out: Path, runtime: Runtime) -> Runtime:
    """`runtime` with the number of threads with which an interrupted job in `out` started.

    A sum divided among another number of threads rounds differently, and the number of free threads depends on what
    else runs.
    """
    try:
        before = Job.model_validate_json((out / ORDER).read_bytes()).runtime
    except (FileNotFoundError, ValueError):
        return runtime
    return runtime.model_copy(update={"threads": before.threads}) if before.ranks == runtime.ranks else runtime
