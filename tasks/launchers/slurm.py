"""Training as jobs of a Slurm cluster whose nodes share this checkout's files.

Each training job is one Slurm job, however often it stops: after a time limit, a preemption or a lost node it is
requeued and continues from its checkpoint. It outlives the flow: a restarted flow finds the Slurm job that is still
pending or running for a folder, and follows it.
"""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import sys
import time
from contextlib import suppress
from pathlib import Path

from pydantic import Field

from pipelines.errors import StageError
from pipelines.lineage.results import CHECKPOINTS, SCRATCH
from pipelines.recipe.job import Job
from pipelines.training.ranks import failure
from tasks.launchers import Launcher, LauncherSession, slurm_queue
from tasks.launchers.environment import training_environment
from tasks.launchers.following import Attempt
from tasks.launchers.slurm_queue import ControllerUnavailable, QueuedJob
from tasks.launchers.slurm_script import file_pattern, render

PROGRAMS = ("sbatch", "squeue", "scancel")
POLL_SECONDS = 5.0
"""Interval between two queries about one job: the controller serves a whole cluster."""
GRACE_SECONDS = 45.0
"""Time that the ranks of a cancelled job have to write a checkpoint."""
END_SECONDS = 90.0
"""Time that a cancelled job has to leave its nodes: Slurm kills it after its KillWait, usually 30 s."""
END_POLL_SECONDS = 1.0
SIGNAL_SECONDS = 5.0
"""Interval at which the signal to end is sent to ranks again."""
LEAVING = "COMPLETING"
FAILURE_REASONS = {
    "CANCELLED": "was cancelled",
    "NODE_FAIL": "lost its node",
    "OUT_OF_MEMORY": "ran out of memory; request more with training.launcher.mem",
    "PREEMPTED": "was preempted, and this partition does not requeue preempted jobs",
    "TIMEOUT": "was ended by its time limit before its ranks had stopped; raise training.launcher.warning",
}
"""Clause of the error message, by final state."""
SCRIPT, ORDER, REACHED = "slurm.sh", "slurm-job.json", "slurm-reached"
"""File names in a job's scratch folder."""

logger = logging.getLogger(__name__)

WORD = r"^[\w.,:+-]+$"
"""A Slurm name, or several separated by commas."""


class SlurmLauncher(Launcher, name="slurm"):
    """Jobs of a Slurm cluster. The fields are sbatch options under sbatch's names; the cluster's defaults apply to the
    rest."""

    partition: str | None = Field(None, pattern=WORD)
    account: str | None = Field(None, pattern=WORD)
    qos: str | None = Field(None, pattern=WORD)
    reservation: str | None = Field(None, pattern=WORD)
    constraint: str | None = Field(None, pattern=r"^[\w.,:+&|*()\[\]-]+$")
    exclude: str | None = Field(None, pattern=r"^[\w.,\[\]-]+$")
    time: str | None = Field(None, pattern=r"^(\d+-)?\d+(:\d\d?){0,2}$")
    """Time limit of each start, `minutes`, `hours:minutes:seconds` or `days-hours`: a longer job is requeued."""
    mem: str | None = Field(None, pattern=r"^\d+[KMGT]?$")
    """Memory on each node."""
    gpus_per_node: str | None = Field(None, pattern=r"^([\w.-]+:)?\d+$")
    """GPUs of each node, for example `a100:4`; None: as many as `devices`."""
    cpus_per_task: int = Field(4, ge=1)
    """Processors, and therefore threads, of a rank."""
    warning: int = Field(120, ge=10, le=65535)
    """Seconds before the time limit at which ranks are signalled to write a checkpoint. Slurm may signal up to a minute
    early, never late."""
    jobs: int = Field(8, ge=1)
    """Maximum number of pending and running jobs of one flow."""

    def open(self, root: Path, log: Path) -> SlurmSession:
        for program in PROGRAMS:
            if shutil.which(program) is None:
                raise StageError(
                    f"launcher slurm: {program} is not on this machine's PATH; start the flow on a login node"
                )
        return SlurmSession(root, log, self)

    def concurrent_jobs(self, cores: int, devices: int) -> int:
        return self.jobs

    def options(self, job: Job) -> dict[str, str]:
        """The sbatch options of a job, except names and paths."""
        runtime = job.runtime
        gpus = str(runtime.devices) if runtime.accelerator == "gpu" else None
        values = {
            "partition": self.partition,
            "account": self.account,
            "qos": self.qos,
            "reservation": self.reservation,
            "constraint": self.constraint,
            "exclude": self.exclude,
            "time": self.time,
            "mem": self.mem,
            "gpus-per-node": self.gpus_per_node or gpus,
            "nodes": str(runtime.nodes),
            "ntasks-per-node": str(runtime.devices),
            "cpus-per-task": str(self.cpus_per_task),
            "signal": f"B:USR1@{self.warning}",
        }
        return {option: value for option, value in values.items() if value is not None}


class SlurmSession(LauncherSession):
    """Submits jobs, or follows those that an earlier flow has submitted."""

    def __init__(self, root: Path, log: Path, slurm: SlurmLauncher) -> None:
        super().__init__(root, log)
        self._slurm = slurm

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            attempts = list(self._attempts)
        for attempt in attempts:
            assert isinstance(attempt, _SlurmJob)
            attempt.cancel()  # signal all of them before waiting for the first
        super().__exit__(*exception)

    def _begin(self, job: Job, order: Path) -> Attempt:
        name = job_name(job)
        log = self.log.with_name(f"{name}.log")  # named after the job, which may outlive this flow
        queued = slurm_queue.find(name)
        while queued is not None and queued.state == LEAVING:
            time.sleep(POLL_SECONDS)  # it is ending, or being requeued
            queued = slurm_queue.find(name)
        if queued is not None:
            return _SlurmJob(job, queued.identifier, log)
        identifier = slurm_queue.submit(self._script(job, name, log), name)
        logger.info("stage %s is Slurm job %s; its log: %s", job.stage_name, identifier, log)
        return _SlurmJob(job, identifier, log)

    def _script(self, job: Job, name: str, log: Path) -> Path:
        """Write the serialised job and the script of a new Slurm job."""
        scratch = job.out / SCRATCH
        log.parent.mkdir(parents=True, exist_ok=True)
        for old in (log, scratch / REACHED):
            old.unlink(missing_ok=True)
        # not the usual file: another flow that follows this job may overwrite that one with other settings
        order = (scratch / ORDER).absolute()
        runtime = job.runtime.model_copy(update={"threads": self._slurm.cpus_per_task})
        order.write_text(job.model_copy(update={"runtime": runtime}).model_dump_json(), encoding="utf-8")
        options = {
            "job-name": name,
            "chdir": str(self.root),
            "output": file_pattern(log),
            "open-mode": "append",
            "requeue": "",
            "export": "ALL",
            **self._slurm.options(job),
        }
        values: dict[str, Path | str] = {
            "python": sys.executable,
            "order": order,
            "failure": job.out / failure.FILE,
            "checkpoints": scratch / CHECKPOINTS,
            "reached": scratch / REACHED,
            "patience": str(self._slurm.warning * 3 // 4),
        }
        script = scratch / SCRIPT
        script.write_text(render(options, training_environment(), values), encoding="utf-8")
        return script


class _SlurmJob:
    """A Slurm job, followed by its id."""

    def __init__(self, job: Job, identifier: str, log: Path) -> None:
        self.job, self.identifier, self.log = job, identifier, log
        self._ended = self._over = False
        self._cancelled = False
        self._last: QueuedJob | None = None
        self._polled = time.monotonic()

    def alive(self) -> bool:
        if not self._ended and time.monotonic() - self._polled > POLL_SECONDS:
            self._poll()
        return not self._ended

    def failure_reason(self) -> str:
        state = "CANCELLED" if self._cancelled else self._last.state if self._last is not None else "UNKNOWN"
        error = "" if state == "CANCELLED" else self._last_error()
        return f"Slurm job {self.identifier} {FAILURE_REASONS.get(state, 'failed')}{error}"

    def cancel(self) -> None:
        """Signal the ranks to end; does not wait."""
        if self._ended:
            return
        with suppress(ControllerUnavailable):
            slurm_queue.terminate(self.identifier)
            self._cancelled = True

    def end(self) -> None:
        began = signalled = time.monotonic()
        while not self._ended and (now := time.monotonic()) - began < END_SECONDS:
            if now - began > GRACE_SECONDS:
                with suppress(ControllerUnavailable):
                    slurm_queue.cancel(self.identifier)
            elif not self._cancelled or now - signalled > SIGNAL_SECONDS:
                self.cancel()  # again: a step that was still starting has not received the first signal
                signalled = now
            time.sleep(END_POLL_SECONDS)
            self._poll()

    def _poll(self) -> None:
        self._polled = time.monotonic()
        try:
            current = slurm_queue.query(self.identifier)
        except ControllerUnavailable as error:
            logger.warning("stage %s: %s; Slurm job %s continues", self.job.stage_name, error, self.identifier)
            return
        if current is not None and current != self._last:
            logger.info("stage %s: Slurm job %s is %s", self.job.stage_name, self.identifier, current.description)
        self._last = current or self._last
        over = current is None or current.ended
        if over:
            # a shared file system shows another machine's files only after the folder is listed, and some seconds late
            os.listdir(self.job.out)
        self._ended, self._over = over and self._over, over

    def _last_error(self) -> str:
        """The last line of the ranks' output, and srun's first error about its tasks."""
        if not self.log.exists():
            return ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        output = [line for line in lines if line.strip() and not line.startswith(("srun:", "slurmstepd"))]
        errors = [line for line in lines if re.match(r"srun: error: .*: tasks? ", line)]
        return "".join(f": {line.strip()}" for line in [*output[-1:], *errors[:1]])


def job_name(job: Job) -> str:
    """The name of a Slurm job: readable words, and a digest of the job's folder, by which a later flow recognises
    it."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{job.recipe}-{job.stage_name}").strip("-")
    return f"cursus-{words}-{hashlib.sha256(str(job.out.resolve()).encode()).hexdigest()[:12]}"
