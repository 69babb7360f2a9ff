"""`cursus lineage`: the tree, what names it, and what it must not import."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from pipelines.errors import CursusError, StoreError
from tasks.models.ancestry import WIDTH, key_figure, lineage
from tests.tasks.conftest import Builder


def put_on_record(builder: Builder, identifier: str, started: str, steps: dict[str, str]) -> None:
    """Write the `execution.json` of an execution whose steps are label to fingerprint."""
    listed = [
        {"stage": label.partition("@")[0], "seed": int(label.partition("@")[2] or 0), "fingerprint": fingerprint}
        for label, fingerprint in steps.items()
    ]
    path = builder.root / "reports" / identifier / "execution.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"id": identifier, "started": started, "steps": listed}), encoding="utf-8")


def test_the_tree_leads_from_the_data_to_the_last_model(builder: Builder) -> None:
    made = {name: artifact.fingerprint for name, artifact in builder.regime().items()}
    text = lineage(builder.root, builder.store, made["int8"])
    lines = text.splitlines()
    assert lines[0] == f"int8 {made['int8']}"
    assert all(len(line) <= WIDTH for line in lines)
    general_table = next(line for line in lines if line.startswith("  docs/general "))
    assert "270 rows" in general_table
    assert "data/prepared/docs/general.parquet" in general_table
    tree = lines[lines.index("") + 1 :]
    tree = tree[tree.index("") + 2 :]
    assert [line.split()[0] for line in tree if line[0] not in " └"] == ["general"]
    assert next(line for line in tree if made["general"][:8] in line).endswith("1m35s")
    drawn = {
        label: line
        for label in ("domain", "task", "classify@0", "small", "int8")
        for line in tree
        if f"─ {label} " in line
    }
    assert drawn["classify@0"].startswith("      ├─ classify@0")
    assert drawn["small"].startswith("      └─ small")
    assert drawn["int8"].startswith("         └─ int8 ◀")
    assert "accuracy 0.610" in drawn["classify@0"]
    assert tree[tree.index(drawn["small"]) + 1] == f"         │  ↗ teacher classify@0 {made['classify@0'][:8]}"
    for label in ("general", "classify@0", "small"):
        assert sum(made[label][:8] in line for line in tree if "↗" not in line) == 1, "an ancestor is drawn once"
    assert made["classify@1"][:8] not in text, "the other seed is no ancestor"


def test_the_key_figure_is_the_first_metric_of_the_task() -> None:
    metrics = {"validation/loss": 0.4, "validation/recall": 0.5, "validation/f1": 0.6, "test/f1": 0.7}
    assert key_figure(metrics, {"name": "tagging"}) == "f1 0.600"
    assert key_figure(metrics, None) == "loss 0.400"
    assert key_figure({"train/loss": 2.0, "lr": 0.1}, None) == "train/loss 2.000"
    assert key_figure({"lr": 0.1}, {"name": "tagging"}) == "-"


def test_a_report_names_all_it_judges(builder: Builder) -> None:
    made = {name: artifact.fingerprint for name, artifact in builder.regime().items()}
    text = lineage(builder.root, builder.store, made["report"][:10])
    assert "judges classify@0" in text
    assert all(made[label][:8] in text for label in made)
    assert all(len(line) <= WIDTH for line in text.splitlines())


def test_random_weights_are_said_to_be_random(builder: Builder) -> None:
    general = builder.step("general", "pretrain")
    scratch = builder.step("scratch", "finetune", parents={"start": general.fingerprint}, untrained=True)
    assert "↗ random weights" in lineage(builder.root, builder.store, scratch.fingerprint)
    assert "random weights" not in lineage(builder.root, builder.store, general.fingerprint)


def test_what_a_model_reads_is_said(builder: Builder) -> None:
    elmo, vectors = builder.step("elmo", "pretrain"), builder.step("vectors", "pretrain", settings={"size": 1})
    read = {"features": elmo.fingerprint, "features:1": vectors.fingerprint}
    tag = builder.step("tag", "finetune", parents=read)
    text = lineage(builder.root, builder.store, tag.fingerprint)
    assert f"↗ features elmo {elmo.fingerprint[:8]}, features:1 vectors {vectors.fingerprint[:8]}" in text
    lines = text.splitlines()
    assert any(line.startswith("└─ tag@0") for line in lines) and any(line.startswith("vectors") for line in lines)


def test_a_table_that_changed_or_went_is_not_counted(builder: Builder) -> None:
    made = builder.regime()
    (builder.root / "data/prepared/docs/task_text.parquet").unlink()
    builder.table("domain", ["something else"])
    text = lineage(builder.root, builder.store, made["task"].fingerprint)
    assert [word for word in ("no longer exists", "changed since", "270 rows") if word in text] == [
        "no longer exists",
        "changed since",
        "270 rows",
    ]


def test_a_stage_means_that_of_the_latest_execution(builder: Builder) -> None:
    made = {name: artifact.fingerprint for name, artifact in builder.regime().items()}
    other = builder.step("small", "compress", settings={"layers": 1}).fingerprint
    put_on_record(builder, "new", "2026-03-02T00:00:00+00:00", made)
    put_on_record(builder, "old", "2026-03-01T00:00:00+00:00", {"small": other})
    assert lineage(builder.root, builder.store, "small").startswith(f"small {made['small']}\n")
    assert lineage(builder.root, builder.store, "classify@1").startswith(f"classify@1 {made['classify@1']}\n")


def test_fingerprints_and_stages_are_told_without_mlflow(builder: Builder) -> None:
    made = {name: artifact.fingerprint for name, artifact in builder.regime().items()}
    put_on_record(builder, "e1", "2026-03-02T00:00:00+00:00", made)
    script = f"""
import sys
from pathlib import Path
from pipelines.lineage.store import Store
from tasks.models.ancestry import lineage
root = Path({str(builder.root)!r})
for reference in ("int8", {made["int8"][:12]!r}):
    assert "small" in lineage(root, Store(root / "data" / "store"), reference)
heavy = {{"mlflow", "prefect", "torch", "transformers"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", script], check=True, env=os.environ, timeout=60)


def test_what_names_nothing_is_told_what_there_is(builder: Builder) -> None:
    made = {name: artifact.fingerprint for name, artifact in builder.regime().items()}
    put_on_record(builder, "e1", "2026-03-02T00:00:00+00:00", made)
    with pytest.raises(StoreError, match="no artifact starts with 'ffff0000ffff'"):
        lineage(builder.root, builder.store, "ffff0000ffff")
    with pytest.raises(
        CursusError, match=r"no registered model is called 'smal'.*Stages.*classify, small, int8, report"
    ):
        lineage(builder.root, builder.store, "smal")
