"""Ranks train one line in each step, and leave the heads of the others alone: any number has the losses of one.

Dropout is off, and sums are taken in another order, as in test_ranks.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS, Result
from pipelines.recipe.job import Job, Runtime
from pipelines.training.metrics_log import read_metrics
from tasks.launchers.local import LocalLauncher
from tests.pipelines.training.lines_recipe import RECIPE
from tests.steps import ROOT, job_of, library_of, plan_of


class Unobserved:
    """Ignores progress and results."""

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None: ...

    def finished(self, job: Job, result: Result) -> None: ...


def test_any_number_of_ranks_has_the_losses_of_one(
    sources: dict[str, DataSource], tables: dict[str, Path], tmp_path: Path
) -> None:
    plan = plan_of(library_of(tmp_path, lines=RECIPE), "lines", sources)
    general, share = plan.steps[:2]
    curves = []
    with LocalLauncher(restarts=0).open(ROOT, tmp_path / "log") as launcher:
        start = job_of(general, {}, tables, tmp_path / "general")
        launcher.run(start, Unobserved())
        for devices in (1, 2, 4):
            runtime = Runtime(log_every=7, checkpoint_every=10**6, devices=devices)
            job = job_of(share, {general.fingerprint: start.out}, tables, tmp_path / str(devices), runtime)
            job = job.model_copy(update={"stage": job.stage.model_copy(update={"dropout": 0.0})})
            launcher.run(job, Unobserved())
            curves.append(read_metrics(job.out / METRICS))
    one, *others = curves
    assert len({line["train/loss"] for line in one if "train/loss" in line}) >= 3, "nothing was learned"
    for other in others:
        assert [line.keys() for line in other] == [line.keys() for line in one]
        for mine, theirs in zip(one, other, strict=True):
            assert theirs == pytest.approx(mine, rel=1e-4, abs=1e-5)
