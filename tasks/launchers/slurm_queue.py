"""Access to Slurm's queue through its own commands: submit, find, query, cancel. No accounting database is needed.

While the controller does not answer, a job is assumed to be in its last known state.
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
"""A restarting controller answers again within this time."""
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
"""Final states, from which a job does not resume by itself."""
PASSED_ON = re.compile(
    r"PATH|HOME|USER|LANG|LC_\w+|TZ|TMPDIR|LD_LIBRARY_PATH|PYTHONPATH|CURSUS_ROOT|CUDA_\w+|HF_HOME"
    r"|(?:NCCL|GLOO|UCX|FI)_\w+|SBATCH_\w+|SLURM_CONF"
)
"""Variables that a job inherits from the flow's environment. Not all of them, because Slurm writes the environment, and
any secrets in it, to its spool directory."""


class QueuedJob(NamedTuple):
    """A job as squeue shows it."""

    identifier: str
    state: str
    reason: str

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def description(self) -> str:
        """The state as text, with the reason why the job waits."""
        state = self.state.lower().replace("_", " ")
        return state if self.reason in ("", "None") else f"{state} ({self.reason})"


class ControllerUnavailable(Exception):
    """Slurm's controller did not answer."""


def submit(script: Path, name: str) -> str:
    """Submit `script` as the job `name`; returns the job id.

    Raises StageError with Slurm's message when Slurm rejects the job, or does not answer for two minutes. After a lost
    answer the job is looked up by name, so that it is not submitted twice.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return _run("sbatch", "--parsable", str(script)).strip().partition(";")[0]
        except ControllerUnavailable as error:
            if time.monotonic() > deadline:
                raise StageError(f"Slurm does not answer: {error}") from None
        time.sleep(RETRY_SECONDS)
        queued = find(name)
        if queued is not None:
            return queued.identifier


def find(name: str) -> QueuedJob | None:
    """This user's pending or running job called `name`, or None. Raises StageError when Slurm does not answer."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            jobs = _squeue(f"--name={name}", f"--user={os.getuid()}")
        except ControllerUnavailable as error:
            if time.monotonic() > deadline:
                raise StageError(f"Slurm does not answer: {error}") from None
            time.sleep(RETRY_SECONDS)
            continue
        return next((job for job in jobs if not job.ended), None)


def query(identifier: str) -> QueuedJob | None:
    """The job with this id; None when Slurm no longer knows it, minutes after it has ended. Raises
    ControllerUnavailable."""
    try:
        return next(iter(_squeue(f"--jobs={identifier}")), None)
    except StageError as error:
        raise ControllerUnavailable(str(error)) from None


def terminate(identifier: str) -> None:
    """Send SIGTERM to the ranks of a running job, or remove a pending job from the queue. Raises ControllerUnavailable.

    Plain `scancel` is not enough: it signals srun as well, which then kills ranks in the middle of a checkpoint.
    """
    _scancel("--state=PENDING", identifier)
    _scancel("--signal=TERM", identifier)


def cancel(identifier: str) -> None:
    """Cancel the job; Slurm kills its ranks when they do not end. Raises ControllerUnavailable."""
    _scancel(identifier)


def _scancel(*arguments: str) -> None:
    try:
        _run("scancel", "--quiet", *arguments)
    except StageError as error:
        raise ControllerUnavailable(str(error)) from None


def _squeue(*filters: str) -> list[QueuedJob]:
    try:
        output = _run("squeue", "--noheader", "--states=all", "--format=%i|%T|%r", *filters)
    except StageError as error:
        if "Invalid job id" in str(error):
            return []
        raise
    return [QueuedJob(*line.strip().split("|", 2)) for line in output.splitlines() if line.strip()]


def _run(*command: str) -> str:
    """Output of a Slurm command. Raises ControllerUnavailable when the controller does not answer, StageError for any
    other failure."""
    environment = {name: value for name, value in os.environ.items() if PASSED_ON.fullmatch(name)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=ANSWER_SECONDS, env=environment, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise ControllerUnavailable(f"{command[0]} had no answer in {ANSWER_SECONDS} s") from None
    if done.returncode == 0:
        return done.stdout
    message = " ".join(done.stderr.split()) or f"exit status {done.returncode}"
    if re.search(
        r"Unable to contact|timed out|Connection refused|connect failure|temporarily|backup controller", message
    ):
        raise ControllerUnavailable(message)
    raise StageError(f"Slurm rejected the command: {message}")
