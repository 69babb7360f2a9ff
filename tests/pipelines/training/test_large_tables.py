"""Tables that do not fit into memory: trained on from files, validated on a sample, and scored whole at the end."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from pipelines.corpora.shards.example_table import ExampleTable
from pipelines.errors import DataError
from pipelines.lineage.results import EXAMPLES, METRICS, SAMPLE, SCRATCH
from pipelines.recipe.job import Job, Runtime
from pipelines.serving.answering import answerer
from pipelines.serving.answering.answerer import Answerer
from pipelines.task_families import TaskFamily
from pipelines.training.batches import stored_examples
from pipelines.training.batches.token_stream import MANIFEST
from pipelines.training.metrics_log import MetricsLog, read_metrics
from pipelines.training.ranks.run import run
from tests.forked_ranks import ForkedSession
from tests.pipelines.training.conftest import Trained
from tests.pipelines.training.test_ranks import Silent
from tests.steps import ROOT

GROWTH = 200 * 2**20
"""Bytes by which ten times as many examples may raise the largest memory of a process. Encoded in memory, these 90,000
took 800 MB."""
MEASURED = """
import json, resource, sys
from pathlib import Path
import numpy as np, pyarrow, pyarrow.parquet as parquet
from pipelines.recipe.job import Job, Runtime
from pipelines.training.ranks.run import run

job = Job.model_validate_json(Path(sys.argv[1]).read_text())
words = np.asarray([f"w{number}" for number in range(20_000)])

def table(path, rows):
    draws = np.random.default_rng(rows).zipf(1.3, (rows, 16)) % len(words)
    texts = [" ".join(words[row]) for row in draws]
    labels = [("email", "json", "logging")[row[0] % 3] for row in draws]
    parquet.write_table(pyarrow.table({"text": texts, "label": labels}), path, row_group_size=8192)
    return path

for rows in (10_000, 100_000):
    folder = Path(sys.argv[2]) / str(rows)
    folder.mkdir()
    sizes = {"train": rows, "validation": rows // 10}
    tables = {**job.tables, **{part: table(folder / f"{part}.parquet", size) for part, size in sizes.items()}}
    budget = job.stage.budget.model_copy(update={"epochs": 200 / rows, "patience": None, "validation": 1000})
    stage = job.stage.model_copy(update={"budget": budget})
    result = run(job.model_copy(update={"tables": tables, "stage": stage, "out": folder / "out"}))
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"peak": peak, "metrics": result.metrics, "steps": result.steps}), flush=True)
"""


def with_validation(job: Job, examples: int) -> Job:
    budget = job.stage.budget.model_copy(update={"validation": examples})
    return job.model_copy(update={"stage": job.stage.model_copy(update={"budget": budget})})


def test_weights_do_not_depend_on_where_examples_are(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor on an interruption in between."""
    monkeypatch.setattr(stored_examples, "AT_ONCE", 5)
    for stage, at in (("classify", 20), ("small", 0)):
        job = trained.job(stage, tmp_path / stage)
        if at:
            with monkeypatch.context() as patch, pytest.raises(InterruptedError):
                patch.setattr(MetricsLog, "train", partialmethod(_train_until, at, MetricsLog.train))
                run(job)
            written = {one: one.stat().st_mtime_ns for one in (job.out / SCRATCH / "encoded").rglob("*.values")}
        result = run(job)
        assert bool(result.resumed_from_step) == bool(at) and SAMPLE not in result.metrics
        if at:
            assert written and all(one.stat().st_mtime_ns == time for one, time in written.items()), "encoded again"
        for name in ("model.safetensors", METRICS):
            assert (job.out / name).read_bytes() == (trained.folder(stage) / name).read_bytes(), name


def _train_until(log: MetricsLog, at: int, train: Callable[..., None], step: int, *others: Any, **named: Any) -> None:
    if step == at:
        raise InterruptedError
    train(log, step, *others, **named)


def test_ranks_read_what_the_first_has_stored(trained: Trained, forked: ForkedSession, tmp_path: Path) -> None:
    """More examples than are encoded at once, on one rank and on two: the same batches."""
    few = list(ExampleTable(trained.tables["train"]))
    rows = [{**few[number % len(few)], "source": f"{number}"} for number in range(stored_examples.AT_ONCE + 100)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "train.parquet", row_group_size=500)
    losses = []
    for devices in (1, 2):
        job = trained.job("classify", tmp_path / str(devices))
        budget = job.stage.budget.model_copy(update={"epochs": 48 / len(rows), "patience": None})
        stage = job.stage.model_copy(update={"budget": budget, "dropout": 0.0})
        changes = {"stage": stage, "tables": {**job.tables, "train": tmp_path / "train.parquet"}}
        job = job.model_copy(update={**changes, "runtime": Runtime(log_every=3, devices=devices)})
        forked.run(job, Silent())
        assert (job.out / SCRATCH / "encoded" / "stage" / "train" / MANIFEST).is_file()
        losses.append([line["train/loss"] for line in read_metrics(job.out / METRICS) if "train/loss" in line])
    assert losses[1] == pytest.approx(losses[0], rel=1e-4, abs=1e-5) and len(losses[0]) == 4


def test_a_sample_by_the_epoch_and_all_at_the_end(trained: Trained, tmp_path: Path) -> None:
    job = with_validation(trained.job("classify", tmp_path / "out"), 7)
    rows = list(ExampleTable(job.tables["validation"]))
    result, family = run(job), TaskFamily.default()
    assert (result.metrics[SAMPLE], result.metrics[EXAMPLES]) == (7, len(rows)) and len(rows) > 7
    labels = Answerer(job.out).task.labels
    answers = Answerer(job.out).answer(rows)
    scores = family.scores(family.statistics([row["label"] for row in rows], answers, labels))
    assert {name: result.metrics[f"validation/{name}"] for name in scores} == pytest.approx(scores, abs=1e-6)
    by_epoch = [
        line["validation/accuracy"] for line in read_metrics(job.out / METRICS) if "validation/accuracy" in line
    ]
    assert all((7 * value) == pytest.approx(round(7 * value), abs=1e-4) for value in by_epoch), "not of seven examples"
    again = with_validation(trained.job("classify", tmp_path / "again"), 7)
    run(again)
    assert (again.out / METRICS).read_text() == (job.out / METRICS).read_text()


def test_answers_are_the_same_in_blocks_and_mistakes_have_their_number(
    trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Answerer(trained.folder("classify"))
    rows = list(ExampleTable(trained.tables["train"]))
    expected, logits = opened.answer(rows), opened.class_logits(rows)
    monkeypatch.setattr(answerer, "BLOCK", 9)
    assert len(rows) > 22 and opened.answer(rows) == expected
    assert np.allclose(opened.class_logits(rows), logits, atol=1e-4)
    with pytest.raises(DataError, match="example 22: the column 'text' is missing"):
        opened.answer([*rows[:22], {"label": "email"}, *rows[22:]])


def test_memory_does_not_grow_with_the_table(trained: Trained, tmp_path: Path) -> None:
    """Training and validation on 10,000 and on 100,000 rows, in one process."""
    job = trained.job("classify", tmp_path / "out")
    (tmp_path / "job.json").write_text(job.model_dump_json())
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "job.json"), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    few, many = (json.loads(line) for line in done.stdout.splitlines())
    assert many["steps"] == few["steps"] == 50
    assert SAMPLE not in few["metrics"]
    assert (many["metrics"][SAMPLE], many["metrics"][EXAMPLES]) == (1000, 10_000)
    assert many["peak"] - few["peak"] < GROWTH, f"{few['peak']:,} bytes, then {many['peak']:,}"
