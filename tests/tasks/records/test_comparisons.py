"""Executions side by side: differences are paired where the test examples are the same, and only there."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from safetensors.numpy import save_file
from typer.testing import CliRunner

from flows.cli import compare
from flows.cli.app import app
from pipelines.errors import CursusError
from pipelines.judging.certainty.resampling import paired_difference
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.store import Artifact
from pipelines.task_families import TaskFamily
from tasks.records.comparisons import find_execution, paired_differences
from tests.tasks.conftest import LABELS, Builder

TRUTH = [LABELS[index % 3] for index in range(120)]


@pytest.fixture
def builder(tmp_path: Path, classifier_folder: Path) -> Builder:
    return Builder(tmp_path, classifier_folder)


def answers(wrong: int, seed: int) -> list[str]:
    """The right answers, but for those to `wrong` examples."""
    drawn = random.Random(seed).sample(range(len(TRUTH)), wrong)
    return [LABELS[(LABELS.index(right) + (index in drawn)) % 3] for index, right in enumerate(TRUTH)]


def execution(
    builder: Builder,
    name: str,
    seeds: Sequence[Sequence[str]],
    test: DataSource,
    stage: str = "classify",
    **more: Any,
) -> list[Artifact]:
    """A recorded execution of `stage` with answers under several seeds, and its evaluation."""
    models = [builder.step(stage, "finetune", seed=seed, settings={"of": name}) for seed in range(len(seeds))]
    judged = {f"subject:{stage}@{one.provenance.seed}": one.fingerprint for one in models}
    report = builder.step("report", "evaluate", parents=judged, data={"test": test})
    accuracy = sum(right == given for one in seeds for right, given in zip(TRUTH, one, strict=True)) / 120 / len(seeds)
    score = {"mean": accuracy, "low": accuracy - 0.05, "high": accuracy + 0.05, "per_seed": [accuracy]}
    section = {"metrics": ["accuracy"], "stages": [{"stage": stage, "seeds": [0], "accuracy": score}]}
    dataset = {"family": "text_classification", "labels": LABELS}
    document = {"dataset": dataset, "sections": {"classification": section}}
    (report.folder / "evaluation.json").write_text(json.dumps(document), encoding="utf-8")
    rows = [
        {"stage": stage, "seed": seed, "index": index, "label": right, "predicted": given}
        for seed, one in enumerate(seeds)
        for index, (right, given) in enumerate(zip(TRUTH, one, strict=True))
    ]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), report.folder / "predictions.parquet")
    made = [*models, report]
    records = [one.provenance for one in made]
    steps = [
        {"stage": one.stage, "seed": one.seed, "kind": one.kind, "fingerprint": one.fingerprint, "parents": one.parents}
        for one in records
    ]
    folder = builder.root / "reports" / f"20260301-101500-{name}"
    folder.mkdir(parents=True)
    record = {
        "id": folder.name,
        "dataset": "docs",
        "recipe": "regime",
        "started": "2026-03-01T10:15:00+00:00",
        "seconds": 60.0,
        "steps": [{**one, "cached": False} for one in steps],
        **more,
    }
    (folder / "execution.json").write_text(json.dumps(record), encoding="utf-8")
    return made


def test_a_difference_is_that_of_the_same_examples_with_its_paired_interval(builder: Builder) -> None:
    test = builder.table("test", TRUTH)
    before, after = [answers(50, 0), answers(52, 1)], [answers(20, 0), answers(22, 1), answers(24, 2)]
    execution(builder, "aaaa", before, test)
    execution(builder, "bbbb", after, test)
    first, second = (find_execution(builder.root, builder.store, name) for name in ("aaaa", "bbbb"))
    (difference,), reason = paired_differences(first, second)
    family = TaskFamily.model_validate("text_classification")
    rows = [[family.statistics(TRUTH, one, LABELS) for one in side] for side in (before, after)]
    expected = paired_difference(family.scorer("accuracy"), *rows, seed=0)
    found = difference.interval
    assert (found.value, found.low, found.high) == pytest.approx(
        (expected.difference, expected.low, expected.high), abs=1e-12
    )
    assert found.value == pytest.approx(51 / 120 - 22 / 120) and difference.verdict == "better" and reason is None
    assert (difference.items, difference.side) == (120, "best"), "the served model is the same, and is not repeated"
    (backwards,), _ = paired_differences(second, first)
    assert backwards.verdict == "worse"


def test_other_test_examples_or_a_pruned_store_give_no_interval_and_a_reason(builder: Builder) -> None:
    execution(builder, "aaaa", [answers(50, 0)], builder.table("test", TRUTH))
    made = execution(builder, "bbbb", [answers(20, 0)], builder.table("test", TRUTH[1:]))
    first, second = (find_execution(builder.root, builder.store, name) for name in ("aaaa", "bbbb"))
    assert paired_differences(first, second) == ([], "they were judged on different test examples")
    (builder.store.root / made[-1].fingerprint / "predictions.parquet").unlink()
    differences, reason = paired_differences(first, second)
    assert not differences and reason is not None and "did not keep" in reason


def test_samples_of_any_task_are_paired(builder: Builder) -> None:
    """An evaluation that keeps samples needs no predictions: the rows are those of its family."""
    test = builder.table("test", TRUTH)
    family = TaskFamily.model_validate("text_classification")
    for name, wrong in (("aaaa", 40), ("bbbb", 30)):
        report = execution(builder, name, [answers(wrong, 3)], test)[-1]
        folder = builder.store.root / report.fingerprint
        rows = family.statistics(TRUTH, answers(wrong, 3), LABELS)
        save_file({"answers/classify@0": np.ascontiguousarray(rows)}, folder / "samples.safetensors")
        (folder / "predictions.parquet").unlink()
    first, second = (find_execution(builder.root, builder.store, name) for name in ("aaaa", "bbbb"))
    (difference,), _ = paired_differences(first, second)
    assert difference.interval.value == pytest.approx(10 / 120)


def test_an_execution_is_named_by_a_part_of_its_id(builder: Builder) -> None:
    with pytest.raises(CursusError, match=r"there is none yet: `cursus run`"):
        find_execution(builder.root, builder.store, "aaaa")
    test = builder.table("test", TRUTH)
    for name in ("aaaa", "aabb"):
        execution(builder, name, [answers(1, 0)], test)
    assert find_execution(builder.root, builder.store, "abb").id == "20260301-101500-aabb"
    with pytest.raises(CursusError, match=r"2 executions have '-aa' in their ids: 20260301-101500-aabb, 2026"):
        find_execution(builder.root, builder.store, "-aa")
    with pytest.raises(CursusError, match=r"reports: no execution has 'cc' in its id; the newest are 20260301-1015"):
        find_execution(builder.root, builder.store, "cc")


def test_the_command_prints_parameters_scores_cost_and_differences(
    root: Path, classifier_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CURSUS_ROOT", str(root))
    monkeypatch.setattr(compare.console, "width", 200)  # that of the terminal where it was first imported
    builder = Builder(root, classifier_folder)
    test = builder.table("test", TRUTH)
    for name, wrong, variants in (("aaaa", 50, "none"), ("bbbb", 20, "hour")):
        execution(builder, name, [answers(wrong, 0)], test, parameters={"variants": variants})
    shown = CliRunner().invoke(app, ["compare", "aaaa", "bbbb"])
    assert shown.exit_code == 0, shown.output
    for words in (
        ["20260301-101500-aaaa", "20260301-101500-bbbb"], ["variants", "none", "hour"],
        ["best/accuracy", "0.583 [0.533, 0.633]", "0.833 [0.783, 0.883]"], ["cost/seconds", "190.0 s"],
        ["20260301-101500-bbbb minus 20260301-101500-aaaa, paired"], ["accuracy", "120", "+0.250 [", "better"],
        ["mlflow", "has not recorded these executions"],
    ):  # fmt: skip
        assert any(all(word in line for word in words) for line in shown.output.splitlines()), (words, shown.output)
    for arguments, message in ((["aaaa"], "two executions or more"), (["aaaa", "aaaa"], "named twice")):
        refused = CliRunner().invoke(app, ["compare", *arguments])
        assert refused.exit_code == 2 and message in refused.stderr
