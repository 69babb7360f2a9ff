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

POLL_SECONDS = 0.25
GRACE_SECONDS = 10

class Listener(Protocol):
    """Hears of jobs while they run."""

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        """New lines of a job's metrics."""

    def finished(self, job: Job, result: Result) -> None:
        """The job is done; called once, while later jobs may still run."""


def launch(jobs: Sequence[Job], log: Path, root: Path, listener: Listener) -> None:
    """Run `jobs` in one child process, in order.

    Raises the CursusError that a job met, or StageError when the child ended without a result. Whatever ends this call
    early also ends the child; checkpoints stay, and launching the same jobs again continues from them.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    order = log.with_suffix(".jobs.json")
    order.write_text(json.dumps([job.model_dump(mode="json") for job in jobs]), encoding="utf-8")
    for job in jobs:
        (job.out / ERROR).unlink(missing_ok=True)
    tails = [_Tail(job) for job in jobs]
    with log.open("w", encoding="utf-8") as output:
        child = subprocess.Popen(
            [sys.executable, "-m", "pipelines.training.worker", str(order)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=root,
            env={**os.environ, **_environment(jobs[0].runtime.threads)},
            start_new_session=True,  # Ctrl-C reaches only the caller, who ends the child in order
        )
        try:
            while child.poll() is None:
                _tell(tails, listener)
                time.sleep(POLL_SECONDS)
        finally:
            _end(child)
    _tell(tails, listener)
    order.unlink(missing_ok=True)
    for tail in tails:
        if not tail.finished:
            raise _failure(tail.job, log, child.returncode)


class _Tail:
    """Follows one job's metrics file."""

    def __init__(self, job: Job) -> None:
        self.job, self.finished = job, False
        self.seen = 0

    def news(self) -> list[dict[str, Any]]:
        path = self.job.out / METRICS
        if not path.exists():
            return []
        lines = [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
        fresh, self.seen = lines[self.seen :], max(self.seen, len(lines))
        return [json.loads(line) for line in fresh]


def _tell(tails: list[_Tail], listener: Listener) -> None:
    for tail in tails:
        if tail.finished:
            continue
        # looked for before the metrics are read: a job that has a result writes no more of them
        done = (tail.job.out / RESULT).exists()
        if news := tail.news():
            listener.progressed(tail.job, news)
        if done:
            tail.finished = True
            listener.finished(tail.job, Result.model_validate_json((tail.job.out / RESULT).read_bytes()))


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


def _end(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.terminate()
        try:
            child.wait(GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
    if child.stdin is not None:
        child.stdin.close()


def _failure(job: Job, log: Path, status: int | None) -> CursusError:
    told = job.out / ERROR
    if told.exists():
        value = json.loads(told.read_text(encoding="utf-8"))
        kind: type[CursusError] = getattr(errors, value["type"], StageError)
        return kind(f"stage {job.stage_name}: {value['message']}")
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    reason = lines[-1] if lines else f"exit status {status}"
    return StageError(f"stage {job.stage_name} ended without a result: {reason} (its log: {log})")
