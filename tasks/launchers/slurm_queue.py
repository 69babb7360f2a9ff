"""Slurm's queue, asked through its own commands: submit, find, look, cancel. No accounting database is needed.

A controller that does not answer is no news: a job that cannot be asked about is taken to be as it was.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from pipelines.errors import StageError

PATIENCE_SECONDS = 120
"""A controller that restarts answers again within this time."""
ANSWER_SECONDS = 30
RETRY_SECONDS = 5
ENDED = {
    "BOOT_FAIL",
    "CANCELLED",
    "COMPLETED",
    "DEADLINE",
    "FAILED",
    "NODE_FAIL",
    "OUT_OF_MEMORY",
    "PREEMPTED",
    "REVOKED",
    "TIMEOUT",
}
"""States from which a job does not come back by itself."""
PASSED_ON = re.compile(
    r"PATH|HOME|USER|LANG|LC_\w+|TZ|TMPDIR|LD_LIBRARY_PATH|PYTHONPATH|CURSUS_ROOT|CUDA_\w+|HF_HOME"
    r"|(?:NCCL|GLOO|UCX|FI)_\w+|SBATCH_\w+|SLURM_CONF"
)
"""What a job's environment has from the flow's. Not the rest: it would be written into Slurm's spool, secrets included."""


class Seen(NamedTuple):
    """A job as the queue shows it."""

    identifier: str
    state: str
    reason: str

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def told(self) -> str:
        """The state in words, with what it waits for."""
        said = self.state.lower().replace("_", " ")
        return said if self.reason in ("", "None") else f"{said} ({self.reason})"


class Silent(Exception):
    """Slurm's controller did not answer."""


def submit(script: Path, name: str) -> str:
    """Queue `script`, whose job is called `name`; the job's number.

    Raises StageError with Slurm's words where it refuses, or does not answer for two minutes. An answer that was lost on
    its way is not asked for twice: the job is found by its name.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return _ask("sbatch", "--parsable", str(script)).strip().partition(";")[0]
        except Silent as silent:
            if time.monotonic() > deadline:
                raise StageError(f"Slurm does not answer: {silent}") from None
        time.sleep(RETRY_SECONDS)
        found = find(name)
        if found is not None:
            return found.identifier


def find(name: str) -> Seen | None:
    """This user's job called `name` that has not ended; None where there is none. StageError where Slurm does not answer."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            seen = _seen(f"--name={name}", f"--user={os.getuid()}")
        except Silent as silent:
            if time.monotonic() > deadline:
                raise StageError(f"Slurm does not answer: {silent}") from None
            time.sleep(RETRY_SECONDS)
            continue
        return next((job for job in seen if not job.ended), None)


def look(identifier: str) -> Seen | None:
    """The job of this number; None where Slurm has forgotten it, as it does minutes after a job has ended. Raises Silent."""
    try:
        return next(iter(_seen(f"--jobs={identifier}")), None)
    except StageError as refused:
        raise Silent(str(refused)) from None


def ask_to_end(identifier: str) -> None:
    """Ask the ranks of a job to end, where they have started, and take it out of the queue where not. Raises Silent.

    Not `scancel` alone: that signals srun as well, which then kills ranks in the middle of a checkpoint.
    """
    _scancel("--state=PENDING", identifier)
    _scancel("--signal=TERM", identifier)


def cancel(identifier: str) -> None:
    """Let Slurm end the job, by force where it does not obey. Raises Silent."""
    _scancel(identifier)


def _scancel(*arguments: str) -> None:
    try:
        _ask("scancel", "--quiet", *arguments)
    except StageError as refused:
        raise Silent(str(refused)) from None


def _seen(*which: str) -> list[Seen]:
    try:
        answer = _ask("squeue", "--noheader", "--states=all", "--format=%i|%T|%r", *which)
    except StageError as refused:
        if "Invalid job id" in str(refused):
            return []
        raise
    return [Seen(*line.strip().split("|", 2)) for line in answer.splitlines() if line.strip()]


def _ask(*command: str) -> str:
    """What a command of Slurm's says. Silent where its controller does not answer, StageError for every other refusal."""
    environment = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=ANSWER_SECONDS, env=environment, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise Silent(f"{command[0]} had no answer in {ANSWER_SECONDS} s") from None
    if done.returncode == 0:
        return done.stdout
    words = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
    if re.search(
        r"Unable to contact|timed out|Connection refused|connect failure|temporarily|backup controller", words
    ):
        raise Silent(words)
    raise StageError(f"Slurm refused: {words}")
