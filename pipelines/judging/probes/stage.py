"""The probe stage: every model is loaded once, and all probes of the stage read its hidden states.

    probe(job)
      ├── probes.json            {"dataset": …, "sections": {probe: its record}}
      └── probes.safetensors     <probe>/<stage>@<seed>/<name>: statistics from which intervals are computed, float64

Both are deterministic in the models, the tables and the job's seed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from pipelines.judging.probes.examples import Examples
from pipelines.judging.samples import Samples, grouped
from pipelines.judging.subjects import JudgingJob, Subject
from pipelines.lineage.disk import atomic_write, write_text_atomically
from pipelines.lineage.results import PROBES, Result
from pipelines.task_families.labelled_tables import MAIN, tables_of_task, tasks_in

if TYPE_CHECKING:
    from pathlib import Path

    from pipelines.judging.probes import Observation, Probe, ProbedStage

STATISTICS = "probes.safetensors"


class RowBudget(Protocol):
    """The budget of a probe stage."""

    @property
    def length(self) -> int:
        """Tokens of the longest row."""


class ProbeStage(Protocol):
    """A stage with probes."""

    @property
    def probes(self) -> Sequence[Probe]: ...
    @property
    def budget(self) -> RowBudget: ...


class ProbeJob(JudgingJob, Protocol):
    """A job that probes models."""

    @property
    def stage(self) -> ProbeStage: ...


def probe(job: ProbeJob) -> Result:
    """Run the probes of `job` on its subjects, and write their records and statistics into `job.out`.

    Raises RecipeError for a model that a probe cannot read, DataError for a table that cannot be used; both before
    anything is written.
    """
    import torch
    from threadpoolctl import threadpool_limits

    torch.set_num_threads(job.runtime.threads)
    with threadpool_limits(job.runtime.threads):
        observations = _observe(job)
        sections = {}
        headline: dict[str, float] = {}
        for one in job.stage.probes:
            record = one.record(_by_stage(job, observations[one.name]), job.seed)
            headline |= record.get("headline", {})
            sections[one.name] = record
    _write(job, sections, observations)
    return Result(metrics=headline)


def read_probe_samples(folder: Path) -> Samples:
    """The statistics in `folder`, the artifact of a probe stage, as samples: those of layers [items, layers, K] by the
    name of the probe, others [items, K] by `statistic_sample`."""
    from safetensors.numpy import load_file

    from pipelines.judging.probes import LAYERS, statistic_sample

    samples = {}
    for key, statistics in load_file(folder / STATISTICS).items():
        model, _, name = key.rpartition("/")
        if name == LAYERS:
            samples[model] = statistics.swapaxes(0, 1)
        else:
            probe, _, stage = model.partition("/")
            samples[f"{statistic_sample(probe, name)}/{stage}"] = statistics
    return grouped(samples)


def _observe(job: ProbeJob) -> dict[str, dict[tuple[str, int], Observation]]:
    """Probe → model → its observation. One model is in memory at a time."""
    from pipelines.judging.probes.model import ProbedModel

    most = max(one.examples_read for one in job.stage.probes)
    task = next(iter(tasks_in(job.tables)), MAIN)
    examples = Examples(tables_of_task(job.tables, task), job.family, job.seed, most)
    observations: dict[str, dict[tuple[str, int], Observation]] = {one.name: {} for one in job.stage.probes}
    for subject in _ordered(job):
        model = ProbedModel(subject, examples, job.stage.budget.length, job.seed, job.language)
        for one in job.stage.probes:
            observations[one.name][subject.stage, subject.seed] = one.observe(model)
    return observations


def _ordered(job: ProbeJob) -> list[Subject]:
    """Subjects in the order in which the recipe names their stages, seeds ascending."""
    order = {stage: index for index, stage in reversed([*enumerate(one.stage for one in job.subjects)])}
    return sorted(job.subjects, key=lambda subject: (order[subject.stage], subject.seed))


def _by_stage(job: ProbeJob, observations: dict[tuple[str, int], Observation]) -> list[ProbedStage]:
    from pipelines.judging.probes import ProbedStage

    names = list(dict.fromkeys(stage for stage, _ in observations))
    return [
        ProbedStage(
            name,
            tuple(seed for stage, seed in observations if stage == name),
            tuple(one for (stage, _), one in observations.items() if stage == name),
        )
        for name in names
    ]


def _write(
    job: ProbeJob, sections: dict[str, Any], observations: dict[str, dict[tuple[str, int], Observation]]
) -> None:
    from safetensors.numpy import save_file

    from pipelines.judging.probes.records import rounded

    job.out.mkdir(parents=True, exist_ok=True)
    arrays = {
        f"{one}/{stage}@{seed}/{name}": statistics
        for one, models in observations.items()
        for (stage, seed), observation in models.items()
        for name, statistics in observation.statistics.items()
    }
    with atomic_write(job.out / STATISTICS) as temporary:
        save_file(arrays, temporary)
    document = {"dataset": {"language": job.language, "family": job.family.name}, "sections": rounded(sections)}
    write_text_atomically(job.out / PROBES, json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
