"""Following a job by what its ranks write, wherever they run."""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any, Protocol

from pipelines.errors import StageError
from pipelines.lineage.results import METRICS, RESULT, Result
from pipelines.recipe.job import Job
from pipelines.training.ranks.failure import read_failure

POLL_SECONDS = 0.1


class Listener(Protocol):
    """Hears of jobs while they run."""

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        """New lines of a job's metrics."""

    def finished(self, job: Job, result: Result) -> None:
        """The job is done; called once."""


class Attempt(Protocol):
    """One start of a job's ranks."""

    log: Path
    """What its ranks print."""

    def alive(self) -> bool:
        """Whether it may still bring a result. One that waits for its turn in a queue is alive."""

    def why(self) -> str:
        """Why it ended without a result: half a sentence."""

    def end(self) -> None:
        """End its ranks in order, so that they leave a checkpoint; by force where they do not. Returns when they are gone."""


def follow(job: Job, attempt: Attempt, listener: Listener) -> None:
    """Tell `listener` what is new until `job` has its result.

    Raises the CursusError that ended the job, or StageError where nothing runs it any more.
    """
    tail = Tail(job)
    while not tail.finished:
        # asked before looking: what a dead process left is complete
        ended = not attempt.alive()
        tail.tell(listener)
        if ended and not tail.finished:
            raise read_failure(job.out, job.stage_name) or StageError(
                f"stage {job.stage_name} ended without a result: {attempt.why()} (its log: {attempt.log})"
            )
        if not tail.finished:
            time.sleep(POLL_SECONDS)


def last_words(log: Path) -> str | None:
    """What a log says went wrong: the first exception that it ends a traceback with, else its last line.

    The first: where one of several ranks fails, the others tell only that they lost it, and torchrun that one failed.
    """
    if not log.exists():
        return None
    lines = [line for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return next((line for line in lines if _RAISED.match(line)), lines[-1] if lines else None)


_RAISED = re.compile(r"(\[rank\d+\]: )?[A-Za-z_.]*(Error|Exception|Interrupt)\b")


def told_before(job: Job, listener: Listener) -> bool:
    """Whether `job` had its result already, of an execution that ended before it was published; `listener` is told.

    Nothing may be started for it: publishing moves the folder away, under the feet of whoever has just been told to look there.
    """
    tail = Tail(job)
    if (job.out / RESULT).exists():
        tail.tell(listener)
    return tail.finished


class Tail:
    """Follows one job's folder."""

    def __init__(self, job: Job) -> None:
        self.job, self.finished, self.seen = job, False, 0
        self._file, self._read = 0, 0
        """The file whose lines were seen, by its inode, and how many bytes of it they are."""

    def tell(self, listener: Listener) -> None:
        # looked for before the metrics are read: a job that has a result writes no more of them
        done = (self.job.out / RESULT).exists()
        if news := self._news():
            listener.progressed(self.job, news)
        if done:
            self.finished = True
            listener.finished(self.job, Result.model_validate_json((self.job.out / RESULT).read_bytes()))

    def _news(self) -> list[dict[str, Any]]:
        """The lines that have come since the last look; one that is still being written is left for the next."""
        try:
            with (self.job.out / METRICS).open("rb") as file:
                now = os.fstat(file.fileno())
                # a resumed job puts another file there, without what an interrupted one logged past its checkpoint
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
