"""Intervals of contrasts contain a known effect as often as they say, on the same items and on different ones."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from pipelines.judging.certainty.contrasts import WeightedSide, contrast_interval
from pipelines.judging.certainty.resampling import contributions
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


def crossed(
    generator: np.random.Generator, spreads: tuple[float, float, float], draws: int, seeds: int, size: int
) -> np.ndarray:
    """Scores [D, S, N] about one truth, 0.7, with the standard deviations of draws, seeds, and of what only a draw and
    a seed together have."""
    of_draws, of_seeds, of_both = spreads
    level = 0.7 + of_draws * generator.normal(size=(draws, 1)) + of_seeds * generator.normal(size=(1, seeds))
    level = level + of_both * generator.normal(size=(draws, seeds))
    easy = 0.2 * generator.normal(size=(1, 1, size))
    return np.asarray(level[:, :, None] + easy + 0.3 * generator.normal(size=(draws, seeds, size)))


@pytest.mark.parametrize("spreads", [(0.0, 0.02, 0.0), (0.03, 0.0, 0.0), (0.03, 0.02, 0.01), (0.0, 0.0, 0.04)])
def test_intervals_over_draws_and_seeds_cover_as_often_as_they_say(spreads: tuple[float, float, float]) -> None:
    generator = np.random.default_rng(8)
    covered, trials = 0, 400
    for _ in range(trials):
        first, second = (crossed(generator, spreads, 3, 5, 120) for _ in range(2))
        variance = contrast_variance([(-1.0, first), (1.0, second)])
        covered += abs(second.mean() - first.mean()) <= variance.half_width
    assert 0.925 <= covered / trials <= 0.995, covered / trials


def test_one_draw_hides_the_variance_between_draws() -> None:
    """What ≥ 3 draws are for: seeds alone call differences certain that are luck of pre-training."""
    generator = np.random.default_rng(9)
    wrong = {1: 0, 3: 0}
    for _ in range(200):
        for draws in wrong:
            first, second = (crossed(generator, (0.03, 0.005, 0.0), draws, 5, 200) for _ in range(2))
            variance = contrast_variance([(-1.0, first), (1.0, second)])
            wrong[draws] += abs(second.mean() - first.mean()) > variance.half_width
    assert wrong[1] > 40 and wrong[3] < 20, wrong


def test_the_interval_of_a_contrast_has_the_width_of_its_draws() -> None:
    generator = np.random.default_rng(11)
    first, second = (crossed(generator, (0.05, 0.01, 0.0), 3, 2, 80) for _ in range(2))
    models = [[rows[:, None] for rows in one.reshape(6, 80)] for one in (first, second)]
    sides = [WeightedSide(weight, mean, rows, "test", 3) for weight, rows in zip((-1.0, 1.0), models, strict=True)]
    found = contrast_interval(sides, 0)
    expected = contrast_variance([(-1.0, first), (1.0, second)])
    assert found.variance is not None and found.variance.draws == pytest.approx(expected.draws) and expected.draws > 0
    assert found.high - found.low == pytest.approx(2 * expected.half_width, rel=0.05)
    assert found.value == pytest.approx(second.mean() - first.mean())


def test_draws_of_equal_models_are_seeds() -> None:
    generator = np.random.default_rng(10)
    models = [generator.random((60, 1)) for _ in range(4)]
    as_seeds = contrast_variance([(1.0, contributions(mean, models))])
    as_draws = contrast_variance([(1.0, contributions(mean, models, 4))])
    assert as_draws.draws == pytest.approx(as_seeds.seeds) and as_draws.seeds == 0
    assert as_draws.draw_freedom == as_seeds.seed_freedom and as_draws.items == pytest.approx(as_seeds.items)
