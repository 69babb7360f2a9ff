"""Training happens in a child process: the caller watches it, streams its metrics, and ends it cleanly.

Success is a job's result file, never the exit code. Thread count, wait policy and allocator settings are in the child's
environment before torch is imported: a busy neighbour costs up to sixty times the time with OpenMP's defaults, and a
heap that gives its pages back costs a small model half its speed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from pipelines import errors
from pipelines.errors import CursusError, StageError
from pipelines.job import METRICS, RESULT, Job, Result
from pipelines.training.worker import ERROR

POLL_SECONDS = 0.1
GRACE_SECONDS = 10


class Listener(Protocol):
    """Hears of jobs while they run."""

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        """New lines of a job's metrics."""

    def finished(self, job: Job, result: Result) -> None:
        """The job is done; called once, while later jobs may still run."""


class Launcher:
    """One child process for the stages of an execution, which pay the start-up of torch once between them.

    The child is started when the launcher is entered, so that it imports torch while the first job is prepared. Leaving
    ends it, whatever the reason; checkpoints stay, and running the same jobs again continues from them.
    """

    def __init__(self, root: Path, threads: int, log: Path) -> None:
        self.root, self.threads, self.log = root, threads, log
        self._child: subprocess.Popen[str] | None = None

    def __enter__(self) -> Launcher:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._start()
        return self

    def __exit__(self, *_: object) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        assert child.stdin is not None
        child.stdin.close()
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()

    def run(self, jobs: Sequence[Job], listener: Listener) -> None:
        """Run `jobs` in order. Raises the CursusError that a job met, or StageError when the child ended without a result."""
        if self._child is None or self._child.poll() is not None:
            self._start()
        child = self._child
        assert child is not None and child.stdin is not None
        order = self.log.with_suffix(".jobs.json")
        order.write_text(json.dumps([job.model_dump(mode="json") for job in jobs]), encoding="utf-8")
        for job in jobs:
            (job.out / ERROR).unlink(missing_ok=True)
        tails = [_Tail(job) for job in jobs]
        try:
            child.stdin.write(f"{order}\n")
            child.stdin.flush()
        except BrokenPipeError:
            pass  # it has just died; that is told below
        while not all(tail.finished for tail in tails):
            # asked before looking: what a dead child left is complete
            ended = child.poll() is not None
            for tail in tails:
                tail.tell(listener)
            if ended:
                break
            time.sleep(POLL_SECONDS)
        order.unlink(missing_ok=True)
        for tail in tails:
            if not tail.finished:
                raise self._failure(tail.job, child.returncode)

    def _start(self) -> None:
        with self.log.open("w", encoding="utf-8") as output:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "pipelines.training.worker"],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.root,
                env={**os.environ, **_environment(self.threads)},
                text=True,
                start_new_session=True,  # Ctrl-C reaches only the caller, who ends the child in order
            )

    def _failure(self, job: Job, status: int | None) -> CursusError:
        told = job.out / ERROR
        if told.exists():
            value = json.loads(told.read_text(encoding="utf-8"))
            kind: type[CursusError] = getattr(errors, value["type"], StageError)
            return kind(f"stage {job.stage_name}: {value['message']}")
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
        path = self.job.out / METRICS
        if not path.exists():
            return []
        lines = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
        fresh, self.seen = lines[self.seen :], max(self.seen, len(lines))
        return [json.loads(line) for line in fresh]


def _environment(threads: int) -> dict[str, str]:
    return {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "RAYON_NUM_THREADS": str(threads),
        "OMP_WAIT_POLICY": "passive",
        "MALLOC_MMAP_MAX_": "0",
        "MALLOC_TRIM_THRESHOLD_": "-1",
        "TOKENIZERS_PARALLELISM": "true",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUNBUFFERED": "1",
    }
