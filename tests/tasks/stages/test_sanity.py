"""A final model that is not surely above its baselines is told of when it is registered."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipelines.judging.certainty.statistics import METRICS, interval, paired_difference
from pipelines.judging.evaluations.stage import EVALUATION
from pipelines.recipe.final_models import LineageStep
from tasks.stages.sanity import registration_warning

TRUTH = np.arange(200) % 4
MAJORITY = np.zeros((1, 200), dtype=np.int64)
CLASSIFY = LineageStep("classify", 0, "finetune", "c" * 8, {})
REPORT = LineageStep("report", 0, "evaluate", "r" * 8, {"subject:classify@0": CLASSIFY.fingerprint})


def predicted(right: int) -> Any:
    """Predictions [1, 200] of which `right` are correct."""
    return np.where(np.arange(200) < right, TRUTH, (TRUTH + 1) % 4)[None]


def scored(predictions: Any) -> dict[str, Any]:
    return {metric: interval(metric, TRUTH, predictions, 4, 0).record() for metric in METRICS}


def warning(folder: Path, sections: dict[str, Any], steps: Sequence[LineageStep] = (CLASSIFY, REPORT)) -> str | None:
    """What is told of an execution whose evaluate stage recorded `sections`."""
    (folder / REPORT.fingerprint).mkdir(exist_ok=True)
    counts = dict.fromkeys("abcd", 50)
    dataset = {"per_label": {"train": counts, "validation": counts, "test": counts}}
    document = json.dumps({"dataset": dataset, "sections": sections})
    (folder / REPORT.fingerprint / EVALUATION).write_text(document)
    return registration_warning(folder, steps)


def section(predictions: Any) -> dict[str, Any]:
    """The section of an evaluation that scored the stage `classify`."""
    return {
        "metrics": list(METRICS),
        "verdict_metric": "accuracy",
        "stages": [{"stage": "classify"} | scored(predictions)],
    }


@pytest.mark.parametrize(("right", "other", "says"), [
    (150, 50, None),
    (55, 50, "is not surely above the baseline training majority 0.250 ["),
    (110, 105, "is not surely above the baseline TF-IDF + logistic regression 0.525 ["),
    (30, 50, "classify: accuracy 0.150 ["),
])  # fmt: skip
def test_a_score_is_compared_with_every_recorded_baseline(
    right: int, other: int, says: str | None, tmp_path: Path
) -> None:
    baselines = [{"name": "majority"} | scored(MAJORITY), {"name": "tfidf"} | scored(predicted(other))]
    told = warning(tmp_path, {"classification": section(predicted(right)), "baselines": {"baselines": baselines}})
    assert told is None if says is None else told is not None and says in told


def test_a_comparison_on_the_same_examples_decides_where_there_is_one(tmp_path: Path) -> None:
    """16 examples more, on the same: surely better, though the two intervals overlap widely."""
    own, other = predicted(116), predicted(100)
    baseline = {"name": "tfidf"} | scored(other)
    sections = {"classification": section(own), "baselines": {"baselines": [baseline]}}
    assert warning(tmp_path, sections) is not None
    difference = paired_difference("accuracy", TRUTH, other, own, 4, 0).record()
    baseline["accuracy_of_classify_minus_this"] = difference
    assert warning(tmp_path, sections) is None


def test_without_baselines_a_score_is_compared_with_chance(tmp_path: Path) -> None:
    assert warning(tmp_path, {"classification": section(predicted(150))}) is None
    told = warning(tmp_path, {"classification": section(predicted(55))})
    assert told is not None and "is not surely above the share of the class 'a' 0.250" in told
    stage: dict[str, Any] = {"stage": "classify", "f1": {"mean": 0.02, "low": 0.0, "high": 0.05}}
    told = warning(tmp_path, {"scores": {"metrics": ["f1"], "verdict_metric": "f1", "stages": [stage]}})
    assert told is not None and told.endswith("is not surely above 0")
    stage |= {"accuracy": {"mean": 0.9, "low": 0.85, "high": 0.95}, "mcc": {"mean": 0.01, "low": -0.1, "high": 0.1}}
    told = warning(
        tmp_path, {"scores": {"metrics": ["accuracy", "mcc"], "verdict_metric": "accuracy", "stages": [stage]}}
    )
    assert told is not None and "[-0.100, 0.100] is not surely above chance 0" in told


def test_a_model_that_no_stage_scored_is_told_of_and_a_backbone_is_not(tmp_path: Path) -> None:
    assert registration_warning(tmp_path, [CLASSIFY]) == "classify: no evaluate stage has scored it on test examples"
    assert registration_warning(tmp_path, [LineageStep("general", 0, "pretrain", "g" * 8, {})]) is None
