"""Job: everything that the process which computes a stage needs, as plain values that serialise to JSON."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import BaseModel, ConfigDict, Field, SerializeAsAny, model_validator

from pipelines.judging.subjects import Subject
from pipelines.parts.distributions import Distribution
from pipelines.recipe.schema import Stage
from pipelines.recipe.sentence_neighbours import check_neighbours
from pipelines.task_families import TaskFamily

if TYPE_CHECKING:
    from pipelines.judging.evaluations.stage import EvaluateJob
    from pipelines.judging.probes.stage import ProbeJob

    def as_judging_jobs(job: Job) -> tuple[EvaluateJob, ProbeJob]:
        """Let the type checker prove that a Job satisfies the protocols of the judging stages."""
        return job, job


class Runtime(BaseModel):
    """How a job is computed: devices, ranks, logging.

    Nothing here changes the optimizer's batches, and nothing enters a fingerprint: another number of ranks divides the
    same batches, and its results differ only by rounding and by the random draws of dropout.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    accelerator: Literal["cpu", "gpu"] = "cpu"
    threads: int = 1
    """Threads of each rank."""
    devices: int = 1
    """Ranks on each node."""
    nodes: int = 1
    distribution: SerializeAsAny[Distribution] = Field(default_factory=Distribution.default)
    """How the network is distributed over several ranks."""
    device_tokens: int | None = None
    """Largest number of tokens in a micro-batch; a rank accumulates gradients over the rest of its share of a batch.
    None: the whole share in one micro-batch."""
    log_every: int = 20
    """Optimizer steps between two records of training metrics."""
    checkpoint_every: int = 400
    """Optimizer steps between two checkpoints."""

    @property
    def ranks(self) -> int:
        """World size: number of processes that train together."""
        return self.devices * self.nodes


class Job(BaseModel):
    """One step to compute: everything it reads, and the folder it writes.

    Raises DataError for tables from which its stage would learn nothing.
    """

    model_config = ConfigDict(frozen=True)

    fingerprint: str
    recipe: str
    stage_name: str
    stage: Stage
    """Fully resolved stage; `optimizer.precision` is no longer `auto`."""
    seed: int
    language: str
    family: SerializeAsAny[TaskFamily] = Field(default_factory=TaskFamily.default)
    """Family of the task that it answers: of the named task that it reads, if it reads just that; else of the main
    one."""
    families: dict[str, SerializeAsAny[TaskFamily]] = {}
    """Named task that it reads → its family."""
    start: Path | None = None
    """Folder of the artifact (or external checkpoint) that this step starts from."""
    head_start: Path | None = None
    """Folder of the artifact whose head this step continues, where that is another."""
    teachers: dict[str, Path] = {}
    """Line → folder of its teacher; "" is the only line of a stage without lines."""
    features: tuple[Path, ...] = ()
    """Folders of the models whose networks this step's network reads, in the order of the stage's `features`."""
    annotation_models: dict[str, Path] = {}
    """Role among the parents → folder of the model that an annotation or an augmentation reads
    (`recipe.model_annotations`)."""
    subjects: tuple[Subject, ...] = ()
    tables: dict[str, Path]
    """Table name → Parquet file or folder of shards: general, domain, task_text, train, validation, test, and the
    dataset's further corpora and named tasks (`parallel`, `stsb.train`)."""
    out: Path
    cache: Path | None = None
    """Folder in which tokenised corpora and compiled kernels are shared with other jobs; None keeps them in `out` while
    the job runs."""
    runtime: Runtime = Runtime()

    @model_validator(mode="after")
    def _learns_something(self) -> Job:
        check_neighbours(self.stage, self.stage_name, self.tables)
        return self
