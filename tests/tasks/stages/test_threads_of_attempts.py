"""An interrupted step goes on with as many threads as it began with."""

from __future__ import annotations

from pathlib import Path

from pipelines.recipe.job import Job, Runtime
from pipelines.recipe.load import Library
from tasks.launchers import ORDER, resumed_runtime
from tests.steps import RECIPES


def test_threads_are_those_of_the_attempt_that_was_interrupted(tmp_path: Path) -> None:
    now = Runtime(threads=2)
    assert resumed_runtime(tmp_path, now) == now, "there was none"
    stage = Library(RECIPES).load("regime").stages["general"]
    job = Job(
        fingerprint="a" * 64, recipe="regime", stage_name="general", stage=stage, seed=0, language="en", tables={},
        out=tmp_path, runtime=Runtime(threads=1, devices=1),
    )  # fmt: skip
    (tmp_path / ORDER).parent.mkdir()
    (tmp_path / ORDER).write_text(job.model_dump_json())
    assert resumed_runtime(tmp_path, now).threads == 1
    assert resumed_runtime(tmp_path, Runtime(threads=1, devices=2)).devices == 2, (
        "how many ranks there are is asked for now"
    )
    (tmp_path / ORDER).write_text(job.model_dump_json()[:-40])
    assert resumed_runtime(tmp_path, now) == now, "killed while it was written"
