"""A search is kept whole: every point with its validation, what was chosen for each side, and why nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import DataError
from pipelines.lineage.provenance import DataSource, Environment, Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.claims import measurements
from pipelines.recipe.plan import Plan, plan
from pipelines.recipe.tuning import grid_recipe
from tasks.datasets.claim_requests import ClaimRequest
from tasks.records.tuning import Tuning, tuning_texts
from tests.steps import SHIPPED, shipped

NAMES = ("general", "domain", "task_text", "train", "validation", "test")
GRID = {"lr": (1e-4, 1e-3, 1e-2)}
SCORES = {"plain": (0.3, 0.6, 0.5), "adapter": (0.1, 0.4, 0.7)}


def searched(metrics: dict[str, dict[int, dict[str, float]]], folder: Path) -> tuple[ClaimRequest, Plan, Store]:
    """The claim of `adapter` over `GRID`, with the validation of each point in a store."""
    recipe = shipped("adapter")
    claim = recipe.claims["within_a_point"].model_copy(update={"tune": GRID})
    recipe = recipe.model_copy(update={"claims": {"within_a_point": claim}})
    (part,) = set(measurements(recipe, claim).values())
    found = plan(
        grid_recipe(recipe, "within_a_point", part.stages), SHIPPED, {n: DataSource(digest=n, path=n) for n in NAMES}
    )
    store = Store(folder / "store")
    for step in found.steps:
        stage, _, number = step.name.partition("_point")
        if number and int(number) - 1 in metrics[stage]:
            store.publish(
                Provenance(
                    fingerprint=step.fingerprint, recipe=step.recipe, stage=step.name, kind="finetune", seed=0,
                    identity=dict(step.identity), parents=dict(step.parents), data=dict(step.data), files={},
                    result={"metrics": metrics[stage][int(number) - 1]},
                    environment=Environment(
                        python="3", platform="", packages={}, commit=None, started="2026-01-01T00:00:00", seconds=1.0
                    ),
                )
            )  # fmt: skip
    return ClaimRequest(recipe, "within_a_point", claim, (part,), (), None, False), found, store


def test_each_side_has_its_best_point_by_the_figure_of_the_claim(tmp_path: Path) -> None:
    metrics = {
        stage: {n: {"validation/accuracy": score, "validation/macro_f1": 1 - score} for n, score in enumerate(scores)}
        for stage, scores in SCORES.items()
    }
    requested, found, store = searched(metrics, tmp_path)
    tuning = Tuning.of(requested, requested.parts[0], found, store)
    assert tuning.metric == "accuracy"
    assert tuning.chosen == {"plain": {"optimizer.lr": 1e-3}, "adapter": {"optimizer.lr": 1e-2}}
    record = tuning.record("docstrings")
    assert record["grid"] == {"lr": [1e-4, 1e-3, 1e-2]}
    assert [one["validation"] for one in record["points"]["adapter"]] == list(SCORES["adapter"])
    assert len({one["fingerprint"] for points in record["points"].values() for one in points}) == 6
    (text,) = tuning_texts({"tuning": [record]})
    assert text.startswith("tuned alike by validation accuracy over 3 points: ")
    assert "plain optimizer.lr 0.001" in text and "adapter optimizer.lr 0.01 (at the end of the grid)" in text
    chosen = requested.chosen(requested.parts[0], tuning.chosen)
    assert requested.choices == {} and chosen.choices[requested.parts[0]]["plain"] == {"optimizer.lr": 1e-3}


def test_without_the_figure_the_first_metric_of_the_task_chooses(tmp_path: Path) -> None:
    metrics = {
        stage: {n: {"validation/macro_f1": score} for n, score in enumerate(scores)} for stage, scores in SCORES.items()
    }
    requested, found, store = searched(metrics, tmp_path)
    assert Tuning.of(requested, requested.parts[0], found, store).metric == "macro_f1"


def test_a_missing_point_or_score_is_told(tmp_path: Path) -> None:
    half = {stage: {0: {"validation/accuracy": 0.5}} for stage in SCORES}
    requested, found, store = searched(half, tmp_path / "half")
    with pytest.raises(DataError, match="_point2 of the grid is not in the store; run the same command again"):
        Tuning.of(requested, requested.parts[0], found, store)
    none: dict[str, dict[int, dict[str, float]]] = {stage: {key: {} for key in range(3)} for stage in SCORES}
    requested, found, store = searched(none, tmp_path / "none")
    with pytest.raises(DataError, match="no common validation score: accuracy, macro_f1"):
        Tuning.of(requested, requested.parts[0], found, store)
