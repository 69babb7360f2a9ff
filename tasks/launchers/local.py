"""Training in child processes of the flow, on this machine.

A job of one rank goes to a warm child that serves many; several ranks are a group of their own, which torchrun starts, and
starts again from the last checkpoint when one of them dies.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import Field

from pipelines.job import Job
from pipelines.training import hardware
from tasks.devices import asked_for, devices, devices_held
from tasks.launchers import Attempt, Launcher, Launching
from tasks.launchers.environment import training_environment
from tasks.launchers.following import Listener, last_words

GRACE_SECONDS = 10

log = logging.getLogger("cursus.launch")


class Local(Launcher, name="local"):
    """Child processes on this machine. A rank is a GPU where there are some, else a process on its share of the cores."""

    restarts: int = Field(3, ge=0)
    """How often the ranks of a job are started again, from the last checkpoint, after one of them has died."""

    def open(self, root: Path, log: Path) -> LocalLaunching:
        return LocalLaunching(root, log, self.restarts)

    def at_once(self, cores: int, devices: int) -> int:
        return max(1, (hardware.gpus() or cores) // devices)


class LocalLaunching(Launching):
    """Children for the jobs of an execution. Those of one rank serve many jobs, which pay the start-up of torch once.

    The first child is started when this is entered, so that it imports torch while the first job is prepared; others when
    they are first needed.
    """

    def __init__(self, root: Path, log: Path, restarts: int) -> None:
        super().__init__(root, log)
        self._restarts = restarts
        self._started = 0
        self._idle: list[_Child] = []
        self._devices: dict[str, tuple[str, ...]] = {}
        """What the jobs that run now hold, by fingerprint."""

    def __enter__(self) -> Self:
        if not devices():  # else it is started when its device is known
            self._idle.append(self._worker(()))
        return self

    def run(self, job: Job, listener: Listener) -> None:
        with devices_held(asked_for(job.runtime), partial(log.warning, "%s: %s", job.stage_name)) as held:
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
            return self._start("pipelines.training.ranks", str(order), *options, held=held)
        with self._lock:
            child = next((one for one in self._idle if one.held == held), None)
            if child is not None:
                self._idle.remove(child)
        if child is None or not child.alive():
            child = self._worker(held)
        child.order(order)
        return child

    def _ended(self, attempt: Attempt) -> None:
        assert isinstance(attempt, _Child)
        if attempt.serves_many:
            with self._lock:
                self._idle.append(attempt)
        else:
            attempt.wait()

    def _worker(self, held: tuple[str, ...]) -> _Child:
        return self._start("pipelines.training.worker", serves_many=True, held=held)

    def _start(self, *command: str, serves_many: bool = False, held: tuple[str, ...]) -> _Child:
        with self._lock:
            log = self.log.with_name(f"{self.log.stem}-{self._started}.log")
            self._started += 1
        return _Child(self.root, log, command, serves_many, held)


class _Child:
    """A process that ends when its standard input does: when this process closes it, or dies."""

    def __init__(
        self, root: Path, log: Path, command: tuple[str, ...], serves_many: bool, held: tuple[str, ...]
    ) -> None:
        self.log, self.serves_many, self.held = log, serves_many, held
        visible = {"CUDA_VISIBLE_DEVICES": ",".join(held)} if held else {}
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=root,
                env={**os.environ, **training_environment(), **visible},
                text=True,
                start_new_session=True,  # Ctrl-C reaches only the caller, who ends the child in order
            )

    def alive(self) -> bool:
        return self._process.poll() is None

    def order(self, order: Path) -> None:
        assert self._process.stdin is not None
        with suppress(
            BrokenPipeError, ValueError
        ):  # it has just died or was ended; whoever follows the job hears of it
            self._process.stdin.write(f"{order}\n")
            self._process.stdin.flush()

    def wait(self) -> None:
        """Let it end by itself, for as long as it is given when it is told to."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_SECONDS)
        self.end()

    def end(self) -> None:
        assert self._process.stdin is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        if self.alive():
            self._process.terminate()
            try:
                self._process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def why(self) -> str:
        status = self._process.wait()
        if status < 0:
            reason = f"killed by {signal.Signals(-status).name}"
            return reason + ", as the system does when memory runs out" if -status == signal.SIGKILL else reason
        return last_words(self.log) or f"exit status {status}"
