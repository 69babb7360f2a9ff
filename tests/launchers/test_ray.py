"""Training on a real Ray cluster of two nodes: the weights, what a kill leaves, and what is said when it cannot be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.job import Job, Result, Runtime
from tasks.launchers.ray import Ray
from tests.launchers.two_raylets import Cluster
from tests.steps import ROOT
from tests.training.conftest import Trained, trained  # noqa: F401

import time
class Listening:
    def __init__(self):
        self.results = []
        self.t=time.time()

    def progressed(self, job: Job, lines: list[dict[str, Any]]) -> None:
        print(f"{time.time()-self.t:.1f}", lines[-1], flush=True)

    def finished(self, job: Job, result: Result) -> None:
        self.results.append(result)
        print(f"{time.time()-self.t:.1f}", "finished")


def test_one(raylets: Cluster, tables, sources, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.steps import job_of, library_of, plan_of
    from tests.training.small_recipe import RECIPE
    for name, value in raylets.environment.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "recipes").mkdir()
    plan = plan_of(library_of(tmp_path / "recipes", small=RECIPE), "small", sources)
    job = job_of(plan.steps[0], {}, tables, tmp_path / "out", Runtime(log_every=7, checkpoint_every=9))
    l=Listening()
    with Ray(address=raylets.address).open(ROOT, tmp_path / "log") as launcher:
        launcher.run(job, l)
    print((tmp_path/"log-0.log").read_text())
    assert len(l.results) == 1
