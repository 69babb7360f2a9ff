"""Training happens in a child process: the caller watches it, streams its metrics, and ends it cleanly.

Success is a job's result file, never the exit code. Thread count, wait policy and allocator settings are in the child's
environment before torch is imported: a busy neighbour costs up to sixty times the time with OpenMP's defaults, and a
heap that gives its pages back costs a small model half its speed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol, Self

from pipelines import errors
from pipelines.errors import CursusError, StageError
from pipelines.job import METRICS, RESULT, Job, Result
from pipelines.training.reporting import read_metrics
from pipelines.training.worker import ERROR

POLL_SECONDS = 0.1
GRACE_SECONDS = 10


class Listener(Protocol):
    """Hears of jobs while they run."""

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        """New lines of a job's metrics."""

    def finished(self, job: Job, result: Result) -> None:
        """The job is done; called once."""


class Launcher:
    """Child processes for the steps of an execution: each serves many steps, which pay the start-up of torch once.

    The first child is started when the launcher is entered, so that it imports torch while the first job is prepared;
    others when they are first needed. Leaving ends them all, whatever the reason; checkpoints stay, and running the
    same jobs again continues from them. `run` may be called from several threads at once.
    """

    def __init__(self, root: Path, log: Path) -> None:
        self.root, self.log = root, log
        self._idle: list[_Child] = []
        self._all: list[_Child] = []
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._idle.append(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            children, self._all, self._idle = self._all, [], []
        for child in children:
            child.end()

    def run(self, job: Job, listener: Listener) -> None:
        """Run `job`. Raises the CursusError that it met, or StageError when its process ended without a result."""
        with self._lock:
            child = self._idle.pop() if self._idle else None
        if child is None or not child.alive():
            child = self._start()
        child.run(job, listener)
        with self._lock:
            self._idle.append(child)

    def _start(self) -> _Child:
        with self._lock:
            child = _Child(self.root, self.log.with_name(f"{self.log.stem}-{len(self._all)}.log"))
            self._all.append(child)
        return child


class _Child:
    """One training process."""

    def __init__(self, root: Path, log: Path) -> None:
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "pipelines.training.worker"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=root,
                env={**os.environ, **_environment()},
                text=True,
                start_new_session=True,  # Ctrl-C reaches only the caller, who ends the child in order
            )

    def alive(self) -> bool:
        return self._process.poll() is None

    def run(self, job: Job, listener: Listener) -> None:
        assert self._process.stdin is not None
        order = self.log.with_suffix(".job.json")
        order.write_text(job.model_dump_json(), encoding="utf-8")
        (job.out / ERROR).unlink(missing_ok=True)
        tail = _Tail(job)
        try:
            self._process.stdin.write(f"{order}\n")
            self._process.stdin.flush()
        except (BrokenPipeError, ValueError):
            pass  # it has just died or was ended; that is told below
        while not tail.finished:
            # asked before looking: what a dead child left is complete
            ended = not self.alive()
            tail.tell(listener)
            if ended and not tail.finished:
                raise self._failure(job)
            if not tail.finished:
                time.sleep(POLL_SECONDS)
        order.unlink(missing_ok=True)

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

    def _failure(self, job: Job) -> CursusError:
        told = job.out / ERROR
        if told.exists():
            value = json.loads(told.read_text(encoding="utf-8"))
            kind: type[CursusError] = getattr(errors, value["type"], StageError)
            return kind(f"stage {job.stage_name}: {value['message']}")
        status = self._process.wait()
        if status < 0:
            reason = f"killed by {signal.Signals(-status).name}"
            if -status == signal.SIGKILL:
                reason += ", as the system does when memory runs out"
        else:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
            reason = next((line for line in reversed(lines) if line.strip()), f"exit status {status}")
        return StageError(f"stage {job.stage_name} ended without a result: {reason} (its log: {self.log})")


class _Tail:
    """Follows one job's folder."""

    def __init__(self, job: Job) -> None:
        self.job, self.finished, self.seen = job, False, 0

    def tell(self, listener: Listener) -> None:
        if self.finished:
            return
        # looked for before the metrics are read: a job that has a result writes no more of them
        done = (self.job.out / RESULT).exists()
        if news := self._news():
            listener.progressed(self.job, news)
        if done:
            self.finished = True
            listener.finished(self.job, Result.model_validate_json((self.job.out / RESULT).read_bytes()))

    def _news(self) -> list[dict[str, Any]]:
        lines = read_metrics(self.job.out / METRICS)
        # a resumed job first drops what an interrupted one logged past its checkpoint
        fresh, self.seen = lines[self.seen :], len(lines)
        return fresh


def _environment() -> dict[str, str]:
    """Set before torch is imported; how many threads a job takes is set job by job."""
    return {
        "OMP_WAIT_POLICY": "passive",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "-1",
        "TOKENIZERS_PARALLELISM": "true",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
    }
