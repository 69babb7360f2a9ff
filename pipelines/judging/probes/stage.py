"""The probe stage: every model is read once, and all probes of the stage look at what was read.

    probe(job)
      ├── probes.json            {"dataset": …, "sections": {probe: its record}}
      └── probes.safetensors     <probe>/<stage>@<seed>/<name>: the statistics that the intervals are computed from, float64

Both follow from the models, the tables and the job's seed alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pipelines.judging.probes.examples import Examples
from pipelines.judging.subjects import JudgingJob, Subject
from pipelines.lineage.disk import write_whole, written_whole
from pipelines.lineage.results import PROBES, Result

if TYPE_CHECKING:
    from pipelines.judging.probes import Observation, Probe, ProbedStage

STATISTICS = "probes.safetensors"


class RowBudget(Protocol):
    """The budget of such a stage."""

    @property
    def length(self) -> int:
        """Tokens of the longest row."""


class ProbeStage(Protocol):
    """The stage of such a job."""

    @property
    def probes(self) -> Sequence[Probe]: ...
    @property
    def budget(self) -> RowBudget: ...


class ProbeJob(JudgingJob, Protocol):
    """A job that probes models."""

    @property
    def stage(self) -> ProbeStage: ...


def probe(job: ProbeJob) -> Result:
    """Look at the subjects of `job` and write what its probes say into `job.out`.

    Raises RecipeError for a model that has nothing to look at, DataError for a table that cannot be used; both before anything
    is written.
    """
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(job.runtime.threads)
    with threadpool_limits(job.runtime.threads):
        looked = _look(job)
        sections = {}
        headline: dict[str, float] = {}
        for one in job.stage.probes:
            record = one.record(_by_stage(job, looked[one.name]), job.seed)
            headline |= record.get("headline", {})
            sections[one.name] = record
    _write(job, sections, looked)
    return Result(metrics=headline)


def _look(job: ProbeJob) -> dict[str, dict[tuple[str, int], Observation]]:
    """Probe → model → what it saw. One model is in memory at a time."""
    from pipelines.judging.probes.model import ProbedModel

    most = max(one.examples_read for one in job.stage.probes)
    examples = Examples(job.tables, job.family, job.seed, most)
    looked: dict[str, dict[tuple[str, int], Observation]] = {one.name: {} for one in job.stage.probes}
    for subject in _ordered(job):
        model = ProbedModel(subject, examples, job.stage.budget.length, job.seed, job.language)
        for one in job.stage.probes:
            looked[one.name][subject.stage, subject.seed] = one.look(model)
    return looked


def _ordered(job: ProbeJob) -> list[Subject]:
    """Stages in the order in which the recipe names them, seeds ascending."""
    places = {stage: place for place, stage in reversed([*enumerate(one.stage for one in job.subjects)])}
    return sorted(job.subjects, key=lambda subject: (places[subject.stage], subject.seed))


def _by_stage(job: ProbeJob, looked: dict[tuple[str, int], Observation]) -> list[ProbedStage]:
    from pipelines.judging.probes import ProbedStage

    names = list(dict.fromkeys(stage for stage, _ in looked))
    return [
        ProbedStage(
            name,
            tuple(seed for stage, seed in looked if stage == name),
            tuple(seen for (stage, _), seen in looked.items() if stage == name),
        )
        for name in names
    ]


def _write(job: ProbeJob, sections: dict[str, Any], looked: dict[str, dict[tuple[str, int], Observation]]) -> None:
    from safetensors.numpy import save_file

    from pipelines.judging.probes.records import rounded

    job.out.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"{one}/{stage}@{seed}/{name}": statistics
        for one, models in looked.items()
        for (stage, seed), seen in models.items()
        for name, statistics in seen.statistics.items()
    }
    with written_whole(job.out / STATISTICS) as aside:
        save_file(arrays, aside)
    document = {"dataset": {"language": job.language, "family": job.family.name}, "sections": rounded(sections)}
    write_whole(job.out / PROBES, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
