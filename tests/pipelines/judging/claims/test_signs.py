"""Which side is which: every form holds where its claim does, and fails where the same models are exchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pipelines.components import discover
from pipelines.judging.claims import ClaimForm, ComparedSide, Verdict, read_form
from pipelines.judging.claims.judgement import JudgedContrast, MeasuredSide, judge, verdict_of_all
from pipelines.judging.figures import RecordedFigure, row_mean

discover(ClaimForm.__module__)
LOW, MIDDLE, HIGH = 0.4, 0.6, 0.8
FORMS: dict[str, tuple[Any, dict[str, float], dict[str, float]]] = {
    # form: its options, levels of which more is better that it holds for, and levels that it fails for
    "greater": ({"system": "a", "baseline": "b"}, {"a": HIGH, "b": LOW}, {"a": LOW, "b": HIGH}),
    "within": ({"system": "a", "baseline": "b", "margin": 0.1}, {"a": HIGH, "b": LOW}, {"a": LOW, "b": HIGH}),
    "times": ({"system": "a", "baseline": "b", "at_least": 1.5}, {"a": HIGH, "b": LOW}, {"a": LOW, "b": HIGH}),
    "in_order": (["a", "b", "c"], {"a": HIGH, "b": MIDDLE, "c": LOW}, {"a": LOW, "b": MIDDLE, "c": HIGH}),
    "rises_with": (["a", "b", "c"], {"a": LOW, "b": MIDDLE, "c": HIGH}, {"a": HIGH, "b": MIDDLE, "c": LOW}),
    "power_law": (
        {"stages": ["a", "b", "c"], "at": [1, 2, 4]},
        {"a": LOW, "b": MIDDLE, "c": HIGH},
        {"a": HIGH, "b": MIDDLE, "c": LOW},
    ),
    "transfers": (
        {"system": "a", "baseline": "b"},
        {"a@judged": HIGH, "b@judged": LOW},
        {"a@judged": LOW, "b@judged": HIGH},
    ),
    "falls_with_shift": (
        {"system": "a"},
        {"a of judged": HIGH, "a of trained": LOW},
        {"a of judged": LOW, "a of trained": HIGH},
    ),
    "gains_more": (
        {"system": ["a", "b"], "baseline": ["a", "b"]},
        {"a@system": HIGH, "b@system": LOW, "a@baseline": MIDDLE, "b@baseline": MIDDLE},
        {"a@system": MIDDLE, "b@system": MIDDLE, "a@baseline": HIGH, "b@baseline": LOW},
    ),
}
COMPARISONS = {"exceeds": ({"system": "a", "at_least": 0.5}, {"a": HIGH}, {"a": LOW})}
"""Of figures that are comparisons themselves: their sign says which side is which, so that none is better lower."""
SPREAD = {"steadier": ({"system": "a", "baseline": "b"}, {"a": 0.01, "b": 0.2}, {"a": 0.2, "b": 0.01})}


def models(level: float, lower: bool) -> list[np.ndarray]:
    """Three seeds of 60 items about a level; of a figure of which less is better, about what it falls short of 1."""
    generator = np.random.default_rng(round(1000 * level))
    value = 1.2 - level if lower else level
    return [(value + 0.02 * generator.normal(size=(60, 1))).clip(0.01) for _ in range(3)]


def contrasts(form: ClaimForm, samples: dict[str, Sequence[np.ndarray]], lower: bool) -> list[JudgedContrast]:
    figure = RecordedFigure("figure", "answers", row_mean, lower=lower)

    def measured(side: ComparedSide) -> MeasuredSide:
        names = (side.stage, f"{side.stage}@{side.judged}", f"{side.stage} of {side.trained}")
        key = next(name for name in names if name in samples)
        return MeasuredSide(samples[key], side.judged or "test", row_mean)

    return judge(form, figure, lower, measured, 0)


def test_no_form_is_forgotten() -> None:
    assert {*FORMS, *COMPARISONS, *SPREAD} == set(ClaimForm.members)


@pytest.mark.parametrize("name", COMPARISONS)
def test_a_comparison_holds_above_its_number_and_fails_below(name: str) -> None:
    options, holds, fails = COMPARISONS[name]
    for levels, verdict in ((holds, "reproduced"), (fails, "not reproduced")):
        samples: dict[str, Sequence[np.ndarray]] = {key: models(level, False) for key, level in levels.items()}
        (found,) = contrasts(read_form(name, options), samples, False)
        assert found.verdict == verdict and found.interval.value == pytest.approx(levels["a"], abs=0.02)


@pytest.mark.parametrize("lower", [False, True], ids=["more is better", "less is better"])
@pytest.mark.parametrize("name", FORMS)
def test_a_form_holds_for_its_claim_and_fails_for_the_opposite(name: str, lower: bool) -> None:
    options, holds, fails = FORMS[name]
    expected: list[tuple[dict[str, float], Verdict]] = [(holds, "reproduced"), (fails, "not reproduced")]
    for levels, verdict in expected:
        samples: dict[str, Sequence[np.ndarray]] = {key: models(level, lower) for key, level in levels.items()}
        found = contrasts(read_form(name, options), samples, lower)
        assert verdict_of_all([one.verdict for one in found]) == verdict
        for one in found:
            assert one.interval.low <= one.interval.value <= one.interval.high
            neutral = 1.0 if read_form(name, options).ratio else 0.0
            assert (one.interval.value > neutral) is (verdict == "reproduced"), "above is what the claim says"


@pytest.mark.parametrize("lower", [False, True], ids=["more is better", "less is better"])
def test_less_spread_is_better_whatever_the_figure(lower: bool) -> None:
    for name, (options, holds, fails) in SPREAD.items():
        for spreads, verdict in ((holds, "reproduced"), (fails, "not reproduced")):
            steps = np.linspace(-1, 1, 6)
            samples = {key: [np.full((5, 1), 2 + spread * one) for one in steps] for key, spread in spreads.items()}
            (found,) = contrasts(read_form(name, options), samples, lower)
            assert found.verdict == verdict
