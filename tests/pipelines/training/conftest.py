"""The small recipe, planned and trained once without interruption."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pipelines.lineage.provenance import DataSource
from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.plan import Plan
from pipelines.training.ranks.run import run
from tests.forked_ranks import ForkedSession
from tests.made_once import made_once
from tests.pipelines.training.small_recipe import RECIPE
from tests.steps import ROOT, job_of, library_of, plan_of

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
    recipes = library_of(tmp_path_factory.mktemp("recipes"), small=RECIPE)
    result = Trained(plan_of(recipes, "small", sources), tables, {})

    def train(root: Path) -> None:
        for step in result.plan.steps:
            result.folders[step.fingerprint] = root / step.name
            run(result.job(step.name, root / step.name))

    root = made_once(tmp_path_factory, "trained", train)
    result.folders.update({step.fingerprint: root / step.name for step in result.plan.steps})
    return result


@pytest.fixture(scope="session")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ForkedSession]:
    """Runs jobs on any number of ranks, which start at once."""
    with ForkedSession(ROOT, tmp_path_factory.mktemp("forked") / "log") as session:
        yield session
