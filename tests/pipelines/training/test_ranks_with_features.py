"""Two ranks that read frozen networks, and two or four that train one, have the losses of one rank.

Dropout is off, and the tolerance is that of test_ranks.py.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.lineage.results import METRICS
from pipelines.recipe.job import Job
from pipelines.training.ranks.run import run
from tests.forked_ranks import ForkedSession
from tests.pipelines.training.reading_recipe import RUNTIME, reading_plan
from tests.pipelines.training.test_ranks import Silent
from tests.steps import job_of


def lines(out: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (out / METRICS).read_text().splitlines()]


def without_dropout(job: Job, ranks: int) -> Job:
    stage = job.stage.model_copy(update={"dropout": 0.0, "budget": job.stage.budget.model_copy(update={"epochs": 3})})
    return job.model_copy(update={"stage": stage, "runtime": RUNTIME.model_copy(update={"devices": ranks})})


@pytest.mark.parametrize(
    ("stage", "read", "numbers"), [("tag", ("elmo", "vectors"), (1, 2)), ("tuned", ("bert",), (1, 2, 4))]
)
def test_ranks_agree_with_one(
    stage: str, read: tuple[str, ...], numbers: tuple[int, ...], forked: ForkedSession, tmp_path: Path
) -> None:
    plan, tables = reading_plan(tmp_path)
    folders: dict[str, Path] = {}
    steps = {step.name: step for step in plan.steps}
    for name in read:
        job = job_of(steps[name], folders, tables, tmp_path / name, RUNTIME)
        run(job)
        folders[steps[name].fingerprint] = job.out
    for ranks in numbers:
        job = job_of(steps[stage], folders, tables, tmp_path / f"on-{ranks}", RUNTIME)
        forked.run(without_dropout(job, ranks), Silent())
    one, *others = [lines(tmp_path / f"on-{ranks}") for ranks in numbers]
    assert len(one) > 3
    for other in others:
        for alone, together in zip(one, other, strict=True):
            assert together == pytest.approx(alone, rel=1e-4, abs=1e-5)
