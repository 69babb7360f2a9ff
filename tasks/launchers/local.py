"""Training in child processes of the flow, on this machine.

A job of one rank is sent to a warm child process that serves many jobs. Several ranks are started by torchrun, which
restarts them from the last checkpoint when one of them dies.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import Field

from pipelines.lineage import hardware
from pipelines.lineage.store import Store
from pipelines.recipe.job import Job
from tasks.environment import STORE, state_folder
from tasks.launchers import Launcher, LauncherSession
from tasks.launchers.child import Child
from tasks.launchers.devices import devices, devices_held, devices_required
from tasks.launchers.following import Attempt, Listener

log = logging.getLogger("cursus.launch")
_WARM: list[Child] = []
"""Children that `LocalLauncher.warm` has started and no session has taken over yet."""


class LocalLauncher(Launcher, name="local"):
    """Child processes on this machine: one rank per GPU, or, without GPUs, one process per share of the cores."""

    restarts: int = Field(3, ge=0)
    """How often the ranks of a job are restarted, from the last checkpoint, after one of them has died."""

    def warm(self, root: Path) -> None:
        if not devices():
            _WARM.append(_worker(root, state_folder(root) / "logs" / f"training-starting-{os.getpid()}.log"))

    def open(self, root: Path, log: Path) -> LocalSession:
        return LocalSession(root, log, self.restarts)

    def concurrent_jobs(self, cores: int, devices: int) -> int:
        return max(1, (hardware.gpus() or cores) // devices)


class LocalSession(LauncherSession):
    """Child processes for the jobs of an execution. A child of one rank serves many jobs, so that torch is imported
    once.

    The first child is started when the session is entered, or by `warm` before that, so that it imports torch while the
    first job is prepared; others are started when they are first needed.
    """

    def __init__(self, root: Path, log: Path, restarts: int) -> None:
        super().__init__(root, log)
        self._restarts = restarts
        self._started = 0
        self._idle: list[Child] = []
        self._devices: dict[str, tuple[str, ...]] = {}
        """Devices held by running jobs, by fingerprint."""

    def __enter__(self) -> Self:
        if not devices():  # otherwise it is started when its device is known
            self._idle.append(self._taken_over() or self._worker(()))
        return self

    def run(self, job: Job, listener: Listener) -> None:
        with devices_held(devices_required(job.runtime), partial(log.warning, "%s: %s", job.stage_name)) as held:
            self._devices[job.fingerprint] = held
            super().run(job, listener)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            child.end()

    def _begin(self, job: Job, order: Path) -> Attempt:
        held = self._devices.get(job.fingerprint, ())
        if job.runtime.ranks > 1:
            options = ["--ranks", str(job.runtime.ranks), "--restarts", str(self._restarts)]
            return self._start("pipelines.training.ranks.local_ranks", str(order), *options, held=held)
        with self._lock:
            child = next((one for one in self._idle if one.held == held), None)
            if child is not None:
                self._idle.remove(child)
        if child is None or not child.alive():
            child = self._worker(held)
        child.submit(order)
        return child

    def _ended(self, attempt: Attempt) -> None:
        assert isinstance(attempt, Child)
        if attempt.serves_many:
            with self._lock:
                self._idle.append(attempt)
        else:
            attempt.wait()

    def _taken_over(self) -> Child | None:
        while _WARM:
            child = _WARM.pop()
            if child.alive():
                child.log = child.log.rename(self._next_log())
                return child
        return None

    def _worker(self, held: tuple[str, ...]) -> Child:
        return _worker(self.root, self._next_log(), held)

    def _start(self, *command: str, held: tuple[str, ...]) -> Child:
        return Child(self.root, self._next_log(), command, held=held)

    def _next_log(self) -> Path:
        with self._lock:
            self._started += 1
            return self.log.with_name(f"{self.log.stem}-{self._started - 1}.log")


def _worker(root: Path, log: Path, held: tuple[str, ...] = ()) -> Child:
    cache = () if held else ("--cache", str(Store(root / STORE).tokens))
    return Child(root, log, ("pipelines.training.ranks.worker", *cache), serves_many=True, held=held)
