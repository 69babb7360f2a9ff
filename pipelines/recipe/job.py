"""What a launcher hands to the process that computes a stage: plain values that travel as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny

from pipelines.judging.subjects import Subject
from pipelines.parts.distributions import Distribution
from pipelines.recipe.schema import Stage
from pipelines.task_families import TaskFamily

if TYPE_CHECKING:
    from pipelines.judging.evaluations.stage import EvaluateJob
    from pipelines.judging.probes.stage import ProbeJob

    def judged(job: Job) -> tuple[EvaluateJob, ProbeJob]:
        """A job is what judging reads, which the type checker proves here."""
        return job, job


class Runtime(BaseModel):
    """How a job is computed. Nothing here changes what is asked of the optimizer, and none of it enters a fingerprint: another
    number of ranks divides the same batches, and differs by what rounding and dropout's draws differ."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    accelerator: Literal["cpu", "gpu"] = "cpu"
    threads: int = 1
    """Of each rank."""
    devices: int = 1
    """Ranks on each node."""
    nodes: int = 1
    distribution: SerializeAsAny[Distribution] = Field(default_factory=Distribution.usually)
    """How the network is divided among several ranks."""
    device_tokens: int | None = None
    """The most tokens a rank takes at a time; the rest of its share of a batch is accumulated. None: all of its share."""
    log_every: int = 20
    """Optimizer steps between two lines of training metrics."""
    checkpoint_every: int = 400
    """Optimizer steps between two checkpoints to resume from."""

    @property
    def ranks(self) -> int:
        """Processes that train together."""
        return self.devices * self.nodes


class Job(BaseModel):
    """One step to compute: everything it reads, and the folder it writes."""

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    recipe: str
    stage_name: str
    stage: Stage
    """Fully resolved; `optimizer.precision` is no longer `auto`."""
    seed: int
    language: str
    family: SerializeAsAny[TaskFamily] = Field(default_factory=TaskFamily.usually)
    """What the labelled tables hold."""
    start: Path | None = None
    """Folder of the artifact (or foreign checkpoint) this step starts from."""
    teacher: Path | None = None
    subjects: tuple[Subject, ...] = ()
    tables: dict[str, Path]
    """Table name (general, domain, task_text, train, validation, test) to a parquet file, or a folder of shards."""
    out: Path
    cache: Path | None = None
    """Folder where tokenised corpora and compiled kernels are kept for other jobs; None keeps them in `out` while the job
    runs."""
    runtime: Runtime = Runtime()
