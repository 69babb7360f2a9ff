"""Each criterion both ways, and open where the evidence is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipelines.judging.gate import Criterion, CriterionOutcome
from pipelines.judging.gate.evidence import Evidence
from tests.pipelines.judging.gate.evidence import CLEAN, WHOLE, attacked, evidence, scores, served


def judged(settings: dict[str, Any], known: Evidence) -> CriterionOutcome:
    found = Criterion.model_validate(settings).judge(known)
    assert found.reason and found.criterion == settings["name"]
    return found


@pytest.mark.parametrize(
    ("asks", "low", "high", "outcome"),
    [
        ({"margin": 0.02}, -0.01, 0.05, "met"),
        ({"margin": 0.02}, -0.019, -0.001, "met"),  # worse, and by no more than the margin
        ({"margin": 0.02}, -0.03, 0.05, "undecided"),
        ({"margin": 0.02}, -0.09, -0.03, "missed"),
        ({"margin": 0.0}, 0.0, 0.0, "met"),  # the very same answers
        ({"asks": "better"}, 0.01, 0.05, "met"),
        ({"asks": "better"}, -0.01, 0.05, "undecided"),
        ({"asks": "better"}, -0.05, -0.01, "missed"),
        ({"asks": "better"}, 0.0, 0.0, "missed"),
        ({"margin": 0.02, "at_least": 0.7}, -0.01, 0.05, "met"),
        ({"margin": 0.02, "at_least": 0.79}, -0.01, 0.05, "undecided"),
        ({"margin": 0.02, "at_least": 0.9}, -0.01, 0.05, "missed"),
    ],
)
def test_quality(asks: dict[str, Any], low: float, high: float, outcome: str) -> None:
    assert judged({"name": "quality", **asks}, evidence(scores(low, high))).outcome == outcome


def test_quality_says_the_numbers_and_what_the_interval_is_over() -> None:
    said = judged({"name": "quality", "margin": 0.02}, evidence(scores(-0.03, 0.05))).reason
    assert "macro_f1 minus the champion's is +0.010 [-0.030, +0.050]" in said
    assert "200 test examples only" in said


def test_a_first_candidate_is_held_against_baselines_and_where_there_are_none_it_is_not_asked() -> None:
    alone = {**scores(0, 0), "ladder": []}
    assert judged({"name": "quality"}, evidence(alone, champion=False)).outcome == "not asked"

    def baseline(low: float, high: float) -> dict[str, Any]:
        by = {"difference": (low + high) / 2, "low": low, "high": high}
        fine = {"difference": 0.3, "low": 0.2, "high": 0.4}
        key = "macro_f1_of_candidate_minus_this"
        return {"baselines": [{"name": "tfidf", key: by}, {"name": "majority", key: fine}]}

    for low, high, outcome in ((0.1, 0.2, "met"), (-0.1, 0.2, "undecided"), (-0.2, -0.1, "missed")):
        found = judged({"name": "quality"}, evidence(alone, baseline(low, high), champion=False))
        assert found.outcome == outcome
    assert "the baseline tfidf's" in found.reason


def test_a_metric_of_another_family_is_named_with_those_there_are() -> None:
    for name in ("quality", "robustness"):
        problem = Criterion.model_validate({"name": name, "metric": "macrof1"}).problem(("macro_f1", "accuracy"))
        assert problem is not None and "no metric 'macrof1'. Did you mean 'macro_f1'?" in problem
        assert Criterion.model_validate({"name": name, "metric": "accuracy"}).problem(("macro_f1", "accuracy")) is None


@pytest.mark.parametrize(
    ("asks", "record", "outcome"),
    [
        ({"times_champion": 1.25}, served(5, 1.0), "met"),
        ({"times_champion": 1.25}, served(5, 1.2), "undecided"),
        ({"times_champion": 1.25}, served(5, 2.0), "missed"),
        ({"times_champion": None, "at_most_ms": 6}, served(5, 9.0), "met"),
        ({"times_champion": None, "at_most_ms": 5.2, "examples": 32}, served(5, 9.0), "undecided"),
        ({"times_champion": 1.25, "at_most_ms": 4}, served(5, 1.0), "missed"),
    ],
)
def test_latency(asks: dict[str, Any], record: dict[str, Any], outcome: str) -> None:
    assert judged({"name": "latency", **asks}, evidence(record)).outcome == outcome


@pytest.mark.parametrize(
    ("asks", "megabytes", "outcome"),
    [
        ({}, 12.5, "met"),
        ({}, 12.6, "missed"),
        ({"times_champion": None, "at_most_mb": 20}, 19, "met"),
        ({"at_most_mb": 11}, 12, "missed"),
    ],
)
def test_model_size(asks: dict[str, Any], megabytes: float, outcome: str) -> None:
    assert judged({"name": "model_size", **asks}, evidence(served(5, 1, megabytes))).outcome == outcome


@pytest.mark.parametrize("name", ["latency", "model_size"])
def test_a_budget_of_the_champions_is_not_asked_of_a_first_candidate(name: str) -> None:
    assert judged({"name": name}, evidence(served(5, 1), champion=False)).outcome == "not asked"


@pytest.mark.parametrize(
    ("asks", "record", "outcome"),
    [
        ({"largest_loss": 0.2}, attacked(0.7, 0.1), "met"),
        ({"largest_loss": 0.2}, attacked(0.7, 0.19), "undecided"),
        ({"largest_loss": 0.2}, attacked(0.5, 0.3), "missed"),
        ({"largest_loss": None, "floor": 0.6}, attacked(0.7, 0.3), "met"),
        ({"largest_loss": None, "floor": 0.69}, attacked(0.7, 0.3), "undecided"),
        ({"largest_loss": 0.5, "floor": 0.8}, attacked(0.7, 0.3), "missed"),
    ],
)
def test_robustness(asks: dict[str, Any], record: dict[str, Any], outcome: str) -> None:
    found = judged({"name": "robustness", **asks}, evidence(record))
    assert found.outcome == outcome and "typos, the worst of 2 attacks" in found.reason


@pytest.mark.parametrize("name", ["quality", "latency", "model_size", "robustness"])
def test_what_was_not_measured_is_undecided(name: str) -> None:
    assert judged({"name": name}, evidence()).outcome == "undecided"


def test_leakage() -> None:
    asked: dict[str, Any] = {"name": "leakage"}
    assert judged(asked, evidence()).outcome == "met"
    left = replace(CLEAN, left_in={"general/test (ngram)": 2})
    found = judged(asked, evidence(leakage=left))
    assert found.outcome == "missed" and "2 general/test (ngram)" in found.reason
    assert judged({**asked, "texts": 2}, evidence(leakage=left)).outcome == "met"
    within = replace(CLEAN, leaked=10)
    assert judged(asked, evidence(leakage=within)).outcome == "missed"
    assert judged({**asked, "test_share": 0.05}, evidence(leakage=within)).outcome == "met"
    assert judged(asked, evidence(leakage=replace(CLEAN, trained_on_this=False))).outcome == "undecided"


def test_lineage() -> None:
    assert judged({"name": "lineage"}, evidence()).outcome == "met"
    found = judged({"name": "lineage"}, evidence(lineage=replace(WHOLE, flaws=("x: differs", "y: is missing"))))
    assert found.outcome == "missed" and found.reason == "x: differs, and 1 more"


@pytest.mark.parametrize(
    ("asks", "changes", "outcome"),
    [
        ({}, {}, "met"),
        ({}, {"commits": {"general": "a" * 40 + "+"}}, "undecided"),
        ({"commit": "known"}, {"commits": {"general": "a" * 40 + "+"}}, "met"),
        ({"commit": "known"}, {"commits": {"general": None}}, "undecided"),
        ({"commit": "any"}, {"commits": {"general": None}}, "met"),
        ({"reproduced": True}, {}, "undecided"),
        ({"reproduced": True}, {"identical": True, "reproduction": "all identical"}, "met"),
        ({"commit": "any"}, {"identical": False, "reproduction": "classify differs"}, "missed"),
    ],
)
def test_reproducible(asks: dict[str, Any], changes: dict[str, Any], outcome: str) -> None:
    known = evidence(lineage=replace(WHOLE, **changes))
    assert judged({"name": "reproducible", **asks}, known).outcome == outcome
