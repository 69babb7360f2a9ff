"""Calibration against scikit-learn and worked cases, on the probabilities of real models and on drawn ones."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from pyarrow import parquet
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from pipelines.judging.evaluations.calibration import equal_mass_error, equal_width_error, error
from pipelines.judging.evaluations.stage import EVALUATION, PREDICTIONS, evaluate
from tests.pipelines.judging.evaluations.conftest import Trained
from tests.pipelines.judging.evaluations.test_robustness import job


def scikit_learns(confidence: NDArray[np.float64], right: NDArray[np.float64], bins: int) -> float:
    """Its reliability curve over bins of equal width, each bin weighted by its texts."""
    share, mean = calibration_curve(right, confidence, n_bins=bins)
    # it leaves empty bins out, and closes them on the other side: no drawn value lies on an edge
    size = np.bincount(np.minimum((confidence * bins).astype(int), bins - 1), minlength=bins)
    return float((size[size > 0] * np.abs(share - mean)).sum() / len(right))


def test_real_models_are_measured_as_scikit_learn_does(trained: Trained, tmp_path: Path) -> None:
    evaluate(job(trained, tmp_path, [{"name": "calibration", "bins": 10}]))
    section = json.loads((tmp_path / EVALUATION).read_text())["sections"]["calibration"]
    table = parquet.read_table(tmp_path / PREDICTIONS)
    labels = json.loads(table.schema.metadata[b"labels"])
    assert section["ece"] == ["equal_width", "equal_mass"]
    for stage in section["stages"]:
        for at, seed in enumerate(stage["seeds"]):
            rows = [row for row in table.to_pylist() if (row["stage"], row["seed"]) == (stage["stage"], seed)]
            chances = np.array([row["probabilities"] for row in rows])
            right = np.array([float(row["predicted"] == row["label"]) for row in rows])
            chances /= chances.sum(axis=1, keepdims=True)  # six digits were written
            wanted = brier_score_loss([row["label"] for row in rows], chances, labels=labels)
            assert stage["brier"]["per_seed"][at] == pytest.approx(wanted, abs=1e-4)
            assert stage["accuracy"]["per_seed"][at] == pytest.approx(right.mean())
            wanted = scikit_learns(chances.max(axis=1), right, 10)
            assert stage["ece"]["equal_width"]["per_seed"][at] == pytest.approx(wanted, abs=1e-3)
        points = stage["diagram"]
        assert sum(point["answers"] for point in points) == len(rows) * len(stage["seeds"])
        assert [point["confidence"] for point in points] == sorted(point["confidence"] for point in points)
        assert all(0 <= point["low"] <= point["accuracy"] <= point["high"] <= 1 for point in points)
        gap = stage["confidence"]["mean"] - stage["accuracy"]["mean"]
        assert stage["overconfidence"]["mean"] == pytest.approx(gap)


def test_bins_of_both_kinds_worked_by_hand() -> None:
    confidence = np.array([0.55, 0.65, 0.75, 0.95])
    right = np.array([0.0, 1.0, 1.0, 1.0])
    # (0, .5] is empty; (.5, 1] holds all: |.725 − .75|
    assert equal_width_error(confidence, right, 2) == pytest.approx(0.025)
    # the two less confident: |.6 − .5|; the two more: |.85 − 1|
    assert equal_mass_error(confidence, right, 2) == pytest.approx((0.1 + 0.15) / 2)
    assert equal_width_error(np.ones(3), np.ones(3), 15) == 0.0
    # fewer texts than bins: each text is one
    assert equal_mass_error(confidence, right, 100) == pytest.approx((0.55 + 0.35 + 0.25 + 0.05) / 4)


def test_a_sure_model_that_is_right_is_not_said_to_be_off_and_one_that_is_not_is() -> None:
    random = np.random.default_rng(0)
    found = []
    for gap in (0.0, 0.15):
        held = 0
        for turn in range(20):
            confidence = random.uniform(0.5, 1, 400)
            right = (random.random(400) < confidence - gap).astype(float)
            rows = np.stack([confidence, right, confidence], axis=1)
            measured = error(lambda some: equal_mass_error(some[:, 0], some[:, 1], 15), [rows], turn, 100)
            held += measured["low"] > 0
        found.append(held)
    # chance alone makes an error of four points here; one in twenty may be taken for more
    assert found[0] <= 4 and found[1] == 20
