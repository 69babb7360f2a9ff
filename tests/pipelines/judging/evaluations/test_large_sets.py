"""Test sets and training sets that are larger than what is held at once, with small numbers for what is held."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from pipelines.judging.evaluations import baselines, stage
from pipelines.judging.evaluations.baselines import BaselinesEvaluation
from pipelines.judging.evaluations.context import EvaluationContext
from pipelines.judging.evaluations.stage import PREDICTIONS, evaluate
from pipelines.networks import text_encoder
from pipelines.recipe.job import Job
from pipelines.recipe.kinds import Kind
from pipelines.recipe.schema import Stage
from pipelines.reports.score_tables import _stages
from tests.pipelines.judging.evaluations.conftest import Trained


def job(trained: Trained, out: Path, suite: list[str]) -> Job:
    made = Stage.model_validate({"kind": Kind.EVALUATE, "start": ["classify"], "suite": suite})
    subjects = tuple(one for one in trained.subjects if one.stage == "classify")
    return Job(
        fingerprint="f" * 64,
        recipe="tiny",
        stage_name="report",
        stage=made,
        seed=0,
        language="en",
        subjects=subjects,
        tables=trained.tables,
        out=out,
    )


def test_predictions_are_the_same_in_parts(trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluate(job(trained, tmp_path / "whole", ["classification"]))
    whole = parquet.read_table(tmp_path / "whole" / PREDICTIONS)
    monkeypatch.setattr(text_encoder, "BLOCK", 13)
    monkeypatch.setattr(stage, "ROWS_AT_ONCE", 17)
    evaluate(job(trained, tmp_path / "parts", ["classification"]))
    parts = parquet.read_table(tmp_path / "parts" / PREDICTIONS)
    assert parquet.read_metadata(tmp_path / "parts" / PREDICTIONS).num_row_groups > 3
    for name in ("stage", "seed", "index", "label", "predicted"):
        assert parts[name] == whole[name]
    values = [np.concatenate(one["probabilities"].to_numpy()) for one in (whole, parts)]
    assert np.allclose(*values, atol=2e-5) and parts.schema == whole.schema


def test_a_linear_model_of_many_texts_is_fitted_on_some_and_says_so(
    trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [*trained.splits["train"], ("a text of a class with a single one", "alone")]
    tables = {**trained.tables, "train": tmp_path / "train.parquet"}
    columns = {"text": [text for text, _ in texts], "label": [label for _, label in texts]}
    parquet.write_table(pyarrow.table(columns), tables["train"])
    monkeypatch.setattr(baselines, "TEXTS", 60)
    monkeypatch.setattr(baselines, "COEFFICIENTS", 500)
    context = EvaluationContext(job(trained, tmp_path, []).model_copy(update={"tables": tables, "subjects": ()}))
    record = BaselinesEvaluation().measure(context)["baselines"]
    settings = record[2]["settings"]
    assert settings["trained_on"] == 60 and settings["features"] == 500 // 5
    drawn = baselines._drawn(context, 60)
    assert drawn == baselines._drawn(context, 60) and len(set(drawn[0])) > 50 and "alone" in drawn[1]
    rows = _stages(record, [], ("accuracy",))
    assert rows[2].note.endswith(f"fitted on {settings['trained_on']} training texts") and not rows[0].note
    few = BaselinesEvaluation(labelled=10).measure(context)["baselines"]
    assert few[2]["settings"]["trained_on"] == 10 and few[:2] == record[:2], "constant answers read all labels"
    monkeypatch.setattr(baselines, "TEXTS", len(texts))
    assert "trained_on" not in BaselinesEvaluation().measure(context)["baselines"][-1]["settings"]
