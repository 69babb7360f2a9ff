"""Intervals of contrasts contain a known effect as often as they say, on the same items and on different ones."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from pipelines.judging.certainty.contrasts import WeightedSide, contrast_interval
from pipelines.judging.certainty.variance_components import (
    ContrastVariance,
    contrast_variance,
    sum_of_independent,
)

TRIALS, ITEMS, SEEDS = 150, 60, 3
SPREAD = 0.02
"""Standard deviation of the true scores of models between seeds."""


def mean(rows: np.ndarray) -> float:
    return float(rows[:, 0].mean())


def log_mean(rows: np.ndarray) -> float:
    return math.log(max(float(rows[:, 0].mean()), 1e-12))


def models(generator: np.random.Generator, hardness: np.ndarray, level: float) -> list[np.ndarray]:
    """Scores [N, 1] of the items by SEEDS models of the true mean `level`."""
    skills = level + SPREAD * generator.standard_normal(SEEDS)
    return [(hardness + skill + 0.2 * generator.standard_normal(len(hardness)))[:, None] for skill in skills]


@pytest.mark.parametrize(
    ("levels", "weights", "datasets", "score", "truth"),
    [
        ((3.0, 2.0), (1, -1), (0, 0), log_mean, math.log(1.5)),  # times
        ((1.1, 1.2, 1.5), (-0.5, 0.0, 0.5), (0, 0, 0), mean, 0.2),  # rises_with
        ((1.5, 1.0, 1.2, 1.0), (1, -1, -1, 1), (0, 0, 1, 1), mean, 0.3),  # gains_more over two datasets
    ],
    ids=["times", "rises_with", "gains_more"],
)
def test_an_interval_contains_a_known_effect_as_often_as_it_says(
    levels: tuple[float, ...], weights: tuple[float, ...], datasets: tuple[int, ...], score: object, truth: float
) -> None:
    generator = np.random.default_rng(7)
    inside = 0
    for trial in range(TRIALS):
        hardness = [0.5 * generator.standard_normal(ITEMS) for _ in range(2)]
        if score is log_mean:  # of a ratio the items' mean matters, so it is taken out
            hardness = [one - one.mean() for one in hardness]
        sides = [
            WeightedSide(weight, score, models(generator, hardness[data], level), str(data))  # type: ignore[arg-type]
            for level, weight, data in zip(levels, weights, datasets, strict=True)
            if weight
        ]
        one = contrast_interval(sides, trial, resamples=100)
        inside += one.low <= truth <= one.high
    # 95 % of 150, and three standard errors
    assert 0.95 * TRIALS - 3 * math.sqrt(TRIALS * 0.95 * 0.05) <= inside


def test_simultaneous_intervals_miss_none_of_several_as_rarely_as_one() -> None:
    generator = np.random.default_rng(8)
    pairs = 4
    missed = 0
    for trial in range(TRIALS):
        hardness = 0.5 * generator.standard_normal(ITEMS)
        ladder = [models(generator, hardness, 1.0) for _ in range(pairs + 1)]
        intervals = [
            contrast_interval(
                [WeightedSide(-1.0, mean, before, "one"), WeightedSide(1.0, mean, after, "one")],
                trial,
                1 - 0.05 / pairs,
                resamples=60,
            )
            for before, after in pairwise(ladder)
        ]
        missed += any(one.low > 0 or one.high < 0 for one in intervals)
    assert missed <= 0.05 * TRIALS + 3 * math.sqrt(TRIALS * 0.05 * 0.95)


def test_variances_of_different_items_add_up_with_satterthwaites_freedom() -> None:
    one, other = ContrastVariance(0.04, 10, 0.01, 2), ContrastVariance(0.02, 40, 0.0, 1)
    both = sum_of_independent([one, other])
    assert (both.items, both.seeds) == (pytest.approx(0.06), 0.01)
    assert both.item_freedom == pytest.approx(0.06**2 / (0.04**2 / 10 + 0.02**2 / 40))
    assert both.seed_freedom == 2 and sum_of_independent([one]) is one


def test_of_a_single_item_all_variance_is_between_seeds() -> None:
    seconds = [3.0, 4.0, 8.0]
    variance = contrast_variance([(1.0, np.asarray(seconds)[:, None])])
    assert variance.items == 0 and variance.seeds == pytest.approx(np.var(seconds, ddof=1) / 3)
    side = WeightedSide(1.0, mean, [np.asarray([[one]]) for one in seconds], "")
    one = contrast_interval([side], 0)
    # 4.303: t with two degrees of freedom
    assert one.high - one.low == pytest.approx(2 * 4.303 * math.sqrt(variance.seeds), rel=0.25)
