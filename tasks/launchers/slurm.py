"""Training as jobs of a Slurm cluster whose nodes share this checkout's files.

One job of Slurm's is one job of ours, however often it stops: a time limit, a preemption or a lost node puts it back into
the queue, and it goes on from its checkpoint. It outlives the flow: killed and started again, a flow finds the job that
still waits or runs for a folder, and follows it.
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
from tasks.launchers import Launcher, Launching, slurm_queue
from tasks.launchers.environment import training_environment
from tasks.launchers.following import Attempt
from tasks.launchers.slurm_queue import Seen, Silent
from tasks.launchers.slurm_script import file_pattern, render

PROGRAMS = ("sbatch", "squeue", "scancel")
LOOK_SECONDS = 5.0
"""Between two questions to the queue about one job: a controller serves a whole cluster."""
GRACE_SECONDS = 45.0
"""What ranks have for the checkpoint they leave, when a job is cancelled."""
END_SECONDS = 90.0
"""What a cancelled job has to leave its nodes: Slurm kills after its KillWait, usually 30 s."""
END_LOOK_SECONDS = 1.0
ASK_SECONDS = 5.0
"""Between two times that ranks are asked to end."""
LEAVING = "COMPLETING"
WHY = {
    "CANCELLED": "was cancelled",
    "NODE_FAIL": "lost its node",
    "OUT_OF_MEMORY": "ran out of memory; ask for more with training.launcher.mem",
    "PREEMPTED": "was preempted, and this partition does not queue such jobs again",
    "TIMEOUT": "was ended by its time limit before its ranks had left; raise training.launcher.warning",
}
"""What became of a job, by the state it ended in."""
SCRIPT, ORDER, REACHED = "slurm.sh", "slurm-job.json", "slurm-reached"
"""In a job's scratch folder."""

logger = logging.getLogger(__name__)

WORD = r"^[\w.,:+-]+$"
"""A name of Slurm's, or several with commas."""


class Slurm(Launcher, name="slurm"):
    """Jobs of a Slurm cluster. The fields are sbatch's options, under sbatch's names; what is left out, the cluster decides."""

    partition: str | None = Field(None, pattern=WORD)
    account: str | None = Field(None, pattern=WORD)
    qos: str | None = Field(None, pattern=WORD)
    reservation: str | None = Field(None, pattern=WORD)
    constraint: str | None = Field(None, pattern=r"^[\w.,:+&|*()\[\]-]+$")
    exclude: str | None = Field(None, pattern=r"^[\w.,\[\]-]+$")
    time: str | None = Field(None, pattern=r"^(\d+-)?\d+(:\d\d?){0,2}$")
    """The limit of each start, `minutes`, `hours:minutes:seconds` or `days-hours`: a longer job is queued again."""
    mem: str | None = Field(None, pattern=r"^\d+[KMGT]?$")
    """Memory on each node."""
    gpus_per_node: str | None = Field(None, pattern=r"^([\w.-]+:)?\d+$")
    """As many as `devices` unless told, for example `a100:4`."""
    cpus_per_task: int = Field(4, ge=1)
    """Processors, and threads, of a rank."""
    warning: int = Field(120, ge=10, le=65535)
    """Seconds before the time limit at which ranks are asked for a checkpoint. Slurm may be a minute early, never late."""
    jobs: int = Field(8, ge=1)
    """The most that wait or run at a time for one flow."""

    def open(self, root: Path, log: Path) -> SlurmLaunching:
        for program in PROGRAMS:
            if shutil.which(program) is None:
                raise StageError(
                    f"launcher slurm: {program} is not on this machine's PATH; start the flow on a login node"
                )
        return SlurmLaunching(root, log, self)

    def at_once(self, cores: int, devices: int) -> int:
        return self.jobs

    def options(self, job: Job) -> dict[str, str]:
        """What sbatch is asked for, besides names and paths."""
        runtime = job.runtime
        gpus = str(runtime.devices) if runtime.accelerator == "gpu" else None
        wishes = {
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
        return {option: value for option, value in wishes.items() if value is not None}


class SlurmLaunching(Launching):
    """Submits jobs, or finds those that an earlier flow has submitted."""

    def __init__(self, root: Path, log: Path, slurm: Slurm) -> None:
        super().__init__(root, log)
        self._slurm = slurm

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            attempts = list(self._attempts)
        for attempt in attempts:
            assert isinstance(attempt, _SlurmJob)
            attempt.cancel()  # all of them, before the first is waited for
        super().__exit__(*exception)

    def _begin(self, job: Job, order: Path) -> Attempt:
        name = job_name(job)
        log = self.log.with_name(f"{name}.log")  # named after the job, which may outlive this flow
        found = slurm_queue.find(name)
        while found is not None and found.state == LEAVING:
            time.sleep(LOOK_SECONDS)  # it is on its way out, or back into the queue
            found = slurm_queue.find(name)
        if found is not None:
            return _SlurmJob(job, found.identifier, log)
        identifier = slurm_queue.submit(self._script(job, name, log), name)
        logger.info("stage %s is Slurm job %s; its log: %s", job.stage_name, identifier, log)
        return _SlurmJob(job, identifier, log)

    def _script(self, job: Job, name: str, log: Path) -> Path:
        """Write the order and the script of a new job."""
        scratch = job.out / SCRATCH
        log.parent.mkdir(parents=True, exist_ok=True)
        for old in (log, scratch / REACHED):
            old.unlink(missing_ok=True)
        # a file of its own: another flow, which follows this job, may write the usual one with other settings
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
    """A job of Slurm's, followed by its number."""

    def __init__(self, job: Job, identifier: str, log: Path) -> None:
        self.job, self.identifier, self.log = job, identifier, log
        self._ended = self._over = False
        self._cancelled = False
        self._seen: Seen | None = None
        self._looked = time.monotonic()

    def alive(self) -> bool:
        if not self._ended and time.monotonic() - self._looked > LOOK_SECONDS:
            self._look()
        return not self._ended

    def why(self) -> str:
        state = "CANCELLED" if self._cancelled else self._seen.state if self._seen is not None else "UNKNOWN"
        words = "" if state == "CANCELLED" else self._last_words()
        return f"Slurm job {self.identifier} {WHY.get(state, 'failed')}{words}"

    def cancel(self) -> None:
        """Ask its ranks to end; does not wait."""
        if self._ended:
            return
        with suppress(Silent):
            slurm_queue.ask_to_end(self.identifier)
            self._cancelled = True

    def end(self) -> None:
        began = asked = time.monotonic()
        while not self._ended and (now := time.monotonic()) - began < END_SECONDS:
            if now - began > GRACE_SECONDS:
                with suppress(Silent):
                    slurm_queue.cancel(self.identifier)
            elif not self._cancelled or now - asked > ASK_SECONDS:
                self.cancel()  # again: a step that was only being started has not heard
                asked = now
            time.sleep(END_LOOK_SECONDS)
            self._look()

    def _look(self) -> None:
        self._looked = time.monotonic()
        try:
            seen = slurm_queue.look(self.identifier)
        except Silent as silent:
            logger.warning("stage %s: %s; Slurm job %s goes on", self.job.stage_name, silent, self.identifier)
            return
        if seen is not None and seen != self._seen:
            logger.info("stage %s: Slurm job %s is %s", self.job.stage_name, self.identifier, seen.told)
        self._seen = seen or self._seen
        over = seen is None or seen.ended
        if over:
            # a shared file system shows what another machine wrote when the folder is listed, and some seconds late
            os.listdir(self.job.out)
        self._ended, self._over = over and self._over, over

    def _last_words(self) -> str:
        """What the ranks, and srun of them, said last."""
        if not self.log.exists():
            return ""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        spoken = [line for line in lines if line.strip() and not line.startswith(("srun:", "slurmstepd"))]
        judged = [line for line in lines if re.match(r"srun: error: .*: tasks? ", line)]
        return "".join(f": {line.strip()}" for line in [*spoken[-1:], *judged[:1]])


def job_name(job: Job) -> str:
    """What Slurm's job is called: words for people, and the folder it writes, by which a later flow knows it again."""
    words = re.sub(r"[^A-Za-z0-9]+", "-", f"{job.recipe}-{job.stage_name}").strip("-")
    return f"cursus-{words}-{hashlib.sha256(str(job.out.resolve()).encode()).hexdigest()[:12]}"
