"""The share of wrong answers, over the sample that scores keep too."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from pipelines.judging.evaluations.error_rate import ErrorRateEvaluation
from pipelines.judging.evaluations.scores import ScoresEvaluation
from pipelines.recipe.figures import recorded_figures
from pipelines.task_families import TaskFamily

FAMILY = TaskFamily.model_validate("text_classification")
LABELS = ["a", "b"]
GOLD = ["a", "a", "b", "b", "a"]


def rows_of(answers: list[str]) -> Any:
    return FAMILY.statistics(GOLD, answers, LABELS)


def test_the_error_is_what_accuracy_leaves_and_both_score_one_sample() -> None:
    kept: dict[tuple[str, str], Any] = {}
    answers = {"half": ["a", "b", "b", "a", "a"], "right": GOLD}
    stages = {name: [SimpleNamespace(stage=name, seed=0)] for name in answers}
    context: Any = SimpleNamespace(
        task_models=stages, family=FAMILY, seed=0, rows=GOLD, statistics=lambda one: rows_of(answers[one.stage]),
        keep=lambda sample, one, rows: kept.update({(sample, one.stage): rows}),
    )  # fmt: skip
    record = ErrorRateEvaluation().measure(context)
    assert record["headline"] == {"error/half": pytest.approx(0.4), "error/right": pytest.approx(0.1)}, "half of one"
    (error,) = ErrorRateEvaluation.figures(FAMILY)
    accuracy = next(one for one in ScoresEvaluation.figures(FAMILY) if one.name == "accuracy")
    assert error.sample == accuracy.sample and error.lower
    assert error.score(kept[error.sample, "half"]) == pytest.approx(1 - accuracy.score(kept[accuracy.sample, "half"]))


def test_families_without_an_accuracy_have_no_error() -> None:
    assert "error" in recorded_figures("pair_classification")
    assert "error" not in recorded_figures("tagging") and "error" not in recorded_figures("pair_regression")
