"""Tables that do not fit into memory: trained on from files, validated on a sample, and scored whole at the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pipelines.corpora.shards.example_table import ExampleTable
from pipelines.errors import DataError
from pipelines.lineage.results import EXAMPLES, METRICS, SAMPLE
from pipelines.recipe.job import Job
from pipelines.serving.answering import answerer
from pipelines.serving.answering.answerer import Answerer
from pipelines.task_families import TaskFamily
from pipelines.training.batches import stored_examples
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tests.pipelines.training.conftest import Trained
from tests.steps import ROOT

GROWTH = 200 * 2**20
"""Bytes by which ten times as many examples may raise the largest memory of a process. Encoded in memory, these 90,000
took 800 MB."""
MEASURED = """
import json, resource, sys
from pathlib import Path
import numpy as np, pyarrow, pyarrow.parquet as parquet
from pipelines.recipe.job import Job
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
    monkeypatch.setattr(stored_examples, "AT_ONCE", 5)
    for stage in ("classify", "small"):
        job = trained.job(stage, tmp_path / stage)
        result = run(job)
        assert (job.out / "model.safetensors").read_bytes() == (
            trained.folder(stage) / "model.safetensors"
        ).read_bytes()
        assert (job.out / METRICS).read_text() == (trained.folder(stage) / METRICS).read_text()
        assert SAMPLE not in result.metrics


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
    assert len(rows) > 25 and opened.answer(rows) == expected
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
