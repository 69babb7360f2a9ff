"""An attempt that ended before its first checkpoint leaves nothing behind."""

from __future__ import annotations

from pathlib import Path

from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.recipe.load import Library
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tests.steps import RECIPES, job_of, plan_of


def test_lines_of_an_attempt_without_checkpoint_are_dropped(
    sources: dict[str, DataSource], tables: dict[str, Path], tmp_path: Path
) -> None:
    step = plan_of(Library(RECIPES), "roberta", sources, tiny=True).steps[0]
    job = job_of(step, {}, tables, tmp_path)
    (job.out / METRICS).write_text('{"step": 1, "tokens": 5, "train/loss": 99.0}\n', encoding="utf-8")
    run(job)
    lines = read_metrics(job.out / METRICS)
    assert lines
    assert all(line["train/loss"] != 99.0 for line in lines)
