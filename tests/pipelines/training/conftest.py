"""The small recipe, planned and trained once without interruption."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.lineage.provenance import DataSource
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.plan import Plan
from pipelines.training.ranks.run import run
from tests.pipelines.training.small_recipe import RECIPE
from tests.steps import job_of, library_of, plan_of

RUNTIME = Runtime(log_every=7, checkpoint_every=9)
"""Lines, checkpoints and validations (every 6 steps) fall on different steps, and sometimes on the same."""


@dataclass
class Trained:
    """Every stage of the small recipe."""

    plan: Plan
    tables: dict[str, Path]
    folders: dict[str, Path]
    """Fingerprint to the folder of an uninterrupted run."""

    def job(self, stage: str, out: Path) -> Job:
        """The job of a stage, writing into `out`."""
        step = next(step for step in self.plan.steps if step.name == stage)
        return job_of(step, self.folders, self.tables, out, RUNTIME)

    def folder(self, stage: str) -> Path:
        return self.folders[next(step.fingerprint for step in self.plan.steps if step.name == stage)]


@pytest.fixture(scope="session")
def trained(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path_factory: pytest.TempPathFactory
) -> Trained:
    root = tmp_path_factory.mktemp("trained")
    (root / "recipes").mkdir()
    result = Trained(plan_of(library_of(root / "recipes", small=RECIPE), "small", sources), tables, {})
    for step in result.plan.steps:
        run(result.job(step.name, root / step.name))
        result.folders[step.fingerprint] = root / step.name
    return result
