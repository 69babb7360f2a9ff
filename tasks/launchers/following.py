"""Follow a job through the files that its ranks write, wherever they run."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from pipelines.errors import StageError
from pipelines.lineage.results import ACTIVITY, METRICS, RESULT, SCRATCH, Result
from pipelines.recipe.job import Job
from pipelines.training.ranks.failure import read_failure

POLL_SECONDS = 0.1


class Listener(Protocol):
    """Receives the progress and the results of jobs."""

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        """Called with new lines of a job's metrics."""

    def finished(self, job: Job, result: Result) -> None:
        """Called once, when the job has its result."""


@runtime_checkable
class ActivityListener(Listener, Protocol):
    """A listener that also receives what a job does where it writes no metrics."""

    def active(self, job: Job, line: str) -> None:
        """Called with each new line about a job's activity."""


class Attempt(Protocol):
    """One start of a job's ranks."""

    log: Path
    """File with the output of its ranks."""

    def alive(self) -> bool:
        """Whether it may still produce a result. An attempt that waits in a queue is alive."""

    def failure_reason(self) -> str:
        """Why it ended without a result, as a clause of a sentence."""

    def end(self) -> None:
        """Stop its ranks so that they write a checkpoint; kill them when they do not stop. Returns when they have
        ended."""


def follow(job: Job, attempt: Attempt, listener: Listener) -> None:
    """Report progress to `listener` until `job` has its result.

    Raises the CursusError that ended the job, or StageError when its attempt has ended without a result.
    """
    tail = Tail(job)
    while not tail.finished:
        # checked before reading: the files of a process that has ended are complete
        ended = not attempt.alive()
        tail.report(listener)
        if ended and not tail.finished:
            raise read_failure(job.out, job.stage_name) or StageError(
                f"stage {job.stage_name} ended without a result: {attempt.failure_reason()} (its log: {attempt.log})"
            )
        if not tail.finished:
            time.sleep(POLL_SECONDS)


def last_error(log: Path) -> str | None:
    """The cause of a failure in a log: the first exception line that ends a traceback, else the last line.

    The first exception, because when one of several ranks fails, the others report only a lost connection, and torchrun
    reports only that a rank failed.
    """
    if not log.exists():
        return None
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return next((line for line in lines if _RAISED.match(line)), lines[-1] if lines else None)


_RAISED = re.compile(r"(\[rank\d+\]: )?[A-Za-z_.]*(Error|Exception|Interrupt)\b")


def already_finished(job: Job, listener: Listener) -> bool:
    """Whether `job` already has a result, from an execution that ended before publishing it; if so, reports it to
    `listener`.

    No process may be started for such a job, because publishing moves the folder that the process would read.
    """
    tail = Tail(job)
    if (job.out / RESULT).exists():
        tail.report(listener)
    return tail.finished


class Tail:
    """Reads new metrics and the result from one job's folder."""

    def __init__(self, job: Job) -> None:
        self.job, self.finished, self.seen = job, False, 0
        self._active = ""
        self._file, self._read = 0, 0
        """Inode of the metrics file that was read, and the number of bytes read of it."""

    def report(self, listener: Listener) -> None:
        """Pass new metrics, and the result if there is one, to `listener`."""
        # checked before the metrics are read: a job that has a result writes no further metrics
        done = (self.job.out / RESULT).exists()
        if isinstance(listener, ActivityListener) and (line := self._activity()):
            listener.active(self.job, line)
        if news := self._news():
            listener.progressed(self.job, news)
        if done:
            self.finished = True
            listener.finished(self.job, Result.model_validate_json((self.job.out / RESULT).read_bytes()))

    def _activity(self) -> str | None:
        """The job's activity if it has changed since the last call."""
        try:
            line = (self.job.out / SCRATCH / ACTIVITY).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        if line == self._active:
            return None
        self._active = line
        return line

    def _news(self) -> list[dict[str, Any]]:
        """Complete metrics lines since the last call; a line that is still being written is left for the next call."""
        try:
            with (self.job.out / METRICS).open("rb") as file:
                now = os.fstat(file.fileno())
                # a resumed job replaces the file, without the lines that were logged after its checkpoint
                again = now.st_ino != self._file or now.st_size < self._read
                known = self.seen if again else 0
                file.seek(0 if again else self._read)
                lines = [line for line in file if line.endswith(b"\n")]
                self._file, self._read = now.st_ino, sum(map(len, lines)) + (0 if again else self._read)
        except FileNotFoundError:
            self.seen = 0
            return []
        self.seen = len(lines) + (0 if again else self.seen)
        return [json.loads(line) for line in lines[known:]]
