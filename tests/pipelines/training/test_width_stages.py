"""Stages of a network that answers at several widths: ordered, trained together, and one of them cut out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet

from pipelines.judging.evaluations.answer_operations import count_operations
from pipelines.lineage.provenance import DataSource
from pipelines.lineage.results import METRICS
from pipelines.models.opening import open_model
from pipelines.networks.leading_widths import at_width
from pipelines.parts.compressions.ordered_widths import layers_by_width
from pipelines.recipe.job import Runtime
from pipelines.serving.answering.answerer import Answerer
from pipelines.training.metrics_log import read_metrics
from pipelines.training.ranks.run import run
from tests.pipelines.recipe.mistakes import check_refusal, refusal
from tests.pipelines.recipe.recipe_texts import labelled
from tests.pipelines.training.small_recipe import CLASSIFY, masked_lm_stage, recipe_of
from tests.steps import job_of, library_of, plan_of

WIDTHS = "  widths: {{like: answer, start: answer, {}objective: match_widths}}"


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        (WIDTHS.format("teacher: answer, "), "match_widths needs width_logits, width_states, which the head sequence_"),
        (WIDTHS.format("head: dynamic_width_classification, "), "match_widths learns from a teacher"),
        (
            WIDTHS.format("head: dynamic_width_classification, teacher: general, "),
            "match_widths matches logits, which general does not provide with its head masked_lm",
        ),
        (
            "  ordered: {like: answer, kind: compress, start: answer, objective: [], budget: {tokens: 0},"
            " compression: ordered_widths}",
            "ordered_widths differentiates the loss of the stage's objectives",
        ),
    ],
)
def test_a_stage_that_cannot_be_is_refused(stage: str, says: str, tmp_path: Path) -> None:
    check_refusal(refusal(tmp_path, "meeting", labelled(stage)), (says,))


RECIPE = recipe_of(
    "narrowing",
    "arXiv:2004.04037",
    masked_lm_stage(tokens=2048, positions=32, batch_tokens=512),
    CLASSIFY,
    """\
  ordered:
    like: classify
    kind: compress
    start: classify
    compression: ordered_widths
    budget: {tokens: 0, calibration: 2}
  widths:
    like: classify
    start: ordered
    teacher: classify
    head: dynamic_width_classification
    objective: match_widths
    budget: {epochs: 2}
  half:
    kind: compress
    start: widths
    corpus: task
    head: dynamic_width_classification
    compression: {name: leading_widths, share: 0.5}
    budget: {length: 32}
""",
)


def test_stages_order_train_and_cut_a_network(
    tables: dict[str, Path], sources: dict[str, DataSource], tmp_path: Path
) -> None:
    plan = plan_of(library_of(tmp_path, narrowing=RECIPE), "narrowing", sources)
    folders = {step.fingerprint: tmp_path / step.name for step in plan.steps}
    for step in plan.steps:
        run(job_of(step, folders, tables, tmp_path / step.name, Runtime(log_every=1)))
    rows = parquet.read_table(tables["test"]).to_pylist()[:8]
    logits = {name: Answerer(tmp_path / name).class_logits(rows) for name in ("classify", "ordered", "widths", "half")}
    np.testing.assert_allclose(logits["ordered"], logits["classify"], atol=1e-4)
    whole = open_model(tmp_path / "widths", "cpu")
    assert whole.record.head.name == "dynamic_width_classification" and not whole.record.changes
    with at_width(layers_by_width(whole.network, "leading_widths"), 0.5):
        inside = Answerer(tmp_path / "widths", opened=whole).class_logits(rows)
    np.testing.assert_allclose(logits["half"], inside, atol=1e-4)
    assert np.abs(inside - logits["widths"]).max() > 1e-4
    operations = {name: count_operations(tmp_path / name, rows) for name in ("widths", "half")}
    assert operations["half"] < 0.7 * operations["widths"]
    weights = (tmp_path / "half" / "model.safetensors").stat().st_size
    assert weights < (tmp_path / "widths" / "model.safetensors").stat().st_size
    lines = read_metrics(tmp_path / "widths" / METRICS)
    losses = {key: [line[key] for line in lines if key in line] for key in ("train/width_logits", "train/width_states")}
    # some steps on a small network: what they teach is shown by the claim, here that both terms train it
    assert all(values and np.isfinite(values).all() and min(values) > 0 for values in losses.values()), losses
    assert np.abs(logits["widths"] - logits["ordered"]).max() > 1e-4
