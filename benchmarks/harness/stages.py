"""Jobs of real stages on real text, without a flow."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.harness.benchmark import Setting
from benchmarks.harness.paced import Loop
from pipelines.corpora.documentation.docstrings import documentation
from pipelines.corpora.shards.tables import TEXTS, write_rows
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.plan import Step
from pipelines.recipe.schema import Stage
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tasks.launchers.environment import training_environment
from tests.small_corpus import write_tables
from tests.steps import job_of, library_of, plan_of

DOCUMENTS = 30_000
"""Number of documentation strings of installed packages."""


def tables(setting: Setting, labelled: bool = False) -> dict[str, Path]:
    """Paths of tables of text, by name: few texts with `setting.quick` or `labelled`."""
    folder = setting.folder("tables")
    paths = write_tables(folder)
    if not (setting.quick or labelled):
        texts = islice(documentation("general"), DOCUMENTS)
        write_rows(folder / "documentation.parquet", TEXTS, ((text, where, "docs") for text, where in texts))
        paths["general"] = folder / "documentation.parquet"
    return paths


class Stages:
    """The stages of a recipe, run in this process when others start from them."""

    def __init__(self, setting: Setting, name: str, recipe: str, tables: Mapping[str, Path]) -> None:
        self.setting, self.tables = setting, tables
        self.folder = setting.folder(name)
        sources = {one: DataSource(digest=f"{n:032x}", path=str(path)) for n, (one, path) in enumerate(tables.items())}
        plan = plan_of(library_of(self.folder, **{name: recipe}), name, sources)
        self._steps: dict[str, Step] = {step.label: step for step in plan.steps}
        self._made: dict[str, Path] = {}
        self._jobs = 0

    def stage(self, name: str) -> Stage:
        """A stage as it is planned."""
        return self._steps[name].stage

    def job(self, stage: str, **runtime: Any) -> Job:
        """The job of a stage whose parents have been run, in a separate folder."""
        step, usual = self._steps[stage], {"threads": self.setting.threads}
        self._jobs += 1  # the same stage may be run in several ways
        out = self.folder / f"{stage}-{self._jobs}-out"
        job = job_of(step, self._made, self.tables, out, Runtime(**(usual | runtime)))
        return job.model_copy(update={"cache": self.folder / "tokens"})

    def make(self, stage: str) -> Path:
        """Run a stage in this process; returns the folder of its model."""
        job = self.job(stage)
        run(job)
        self._made[self._steps[stage].fingerprint] = job.out
        return job.out

    def loop(self, stage: str, units: float, **runtime: Any) -> tuple[Loop, Job]:
        """The stage as a launcher would train it, as a loop that takes turns."""
        job = self.job(stage, **runtime)
        order = job.out / "order.json"
        order.write_text(job.model_dump_json(), encoding="utf-8")
        module = "benchmarks.harness.stage" if job.runtime.ranks == 1 else "benchmarks.harness.ranks"
        return Loop(module, order, units, training_environment()), job


def losses(job: Job, name: str = "train/loss") -> tuple[tuple[int, float], ...]:
    """(tokens, loss) of each metrics line of a stage."""
    lines = read_metrics(job.out / METRICS)
    return tuple((int(line["tokens"]), line[name]) for line in lines if name in line)
