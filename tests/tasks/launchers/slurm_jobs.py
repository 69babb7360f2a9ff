"""A brief job for a Slurm of the tests, what its flow hears, and what Slurm shows of it."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipelines.lineage.results import CHECKPOINTS, SCRATCH, Result
from pipelines.recipe.job import Job, Runtime
from tasks.launchers.slurm import SlurmLauncher, SlurmSession, job_name
from tests.steps import ROOT

RUNTIME = Runtime(log_every=7, checkpoint_every=9, devices=2)
FOLDER = "out of $HOME %j 'it'"
"""What a folder may be called, and what a shell and sbatch would make of it if it were not quoted."""
SECONDS = 120


class Heard:
    """What a flow is told."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.results: list[Result] = []

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        self.steps += [line["step"] for line in lines]

    def finished(self, job: Job, result: Result) -> None:
        self.results.append(result)


class Running:
    """A job that runs in a thread, as a task of a flow runs it."""

    def __init__(self, launcher: SlurmSession, job: Job) -> None:
        self.heard, self.job = Heard(), job
        self.errors: list[Exception] = []
        self._launcher = launcher
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._launcher.run(self.job, self.heard)
        except Exception as error:
            self.errors.append(error)

    def wait(self) -> None:
        """Until the launcher has returned, or raised one of `errors`."""
        self._thread.join(SECONDS)
        assert not self._thread.is_alive()


def until(reached: Callable[[], Any]) -> Any:
    """The first answer that is not empty."""
    deadline = time.monotonic() + SECONDS
    while not (answer := reached()):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    return answer


def opened(job: Job, **fields: Any) -> SlurmSession:
    return SlurmLauncher.model_validate({"cpus_per_task": 1, **fields}).open(ROOT, job.out.parent / "training.log")


def alone(job: Job) -> Job:
    """The job, of one rank."""
    return job.model_copy(update={"runtime": Runtime()})


def shown(job: Job, field: str) -> str | None:
    """A field of Slurm's record of `job`, the newest where it was submitted more than once; None where there is
    none."""
    answer = subprocess.run(["scontrol", "--oneliner", "show", "job"], capture_output=True, text=True).stdout
    records = [line for line in answer.splitlines() if f" JobName={job_name(job)} " in line]
    return records[-1].partition(f"{field}=")[2].split()[0] if records else None


def started_again(job: Job, times: int) -> bool:
    """Whether it has come back from the queue; it is hurried along, where Slurm lets a job wait that was queued
    again."""
    number = str(shown(job, "JobId"))
    subprocess.run(["scontrol", "update", f"JobId={number}", "StartTime=now"], capture_output=True)
    return shown(job, "Restarts") == str(times) and shown(job, "JobState") == "RUNNING"


def checkpoints(job: Job) -> list[Path]:
    return list((job.out / SCRATCH / CHECKPOINTS).glob("step-*"))


def warn(job: Job) -> None:
    """What Slurm does when a time limit is near."""
    subprocess.run(["scancel", "--signal=USR1", "--batch", str(shown(job, "JobId"))], check=True)
