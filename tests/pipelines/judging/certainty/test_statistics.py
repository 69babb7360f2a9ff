"""Metrics equal scikit-learn's; intervals contain the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from pipelines.judging.certainty.resampling import paired_difference as on_any_score
from pipelines.judging.certainty.significance import holm_corrected
from pipelines.judging.certainty.statistics import METRICS, contributions, interval, paired_difference, score

CLASSES = 5


@pytest.mark.parametrize("seed", range(5))
def test_metrics_equal_scikit_learn_even_when_a_class_never_occurs(seed: int) -> None:
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, CLASSES - 1, 40)  # the last class is never true
    predicted = np.where(generator.random((3, 40)) < 0.5, truth, generator.integers(0, 2 + seed, (3, 40)))
    for row, accuracy, f1 in zip(
        predicted,
        score("accuracy", truth, predicted, CLASSES + 2),
        score("macro_f1", truth, predicted, CLASSES + 2),
        strict=True,
    ):
        assert accuracy == pytest.approx(accuracy_score(truth, row), abs=1e-7)
        assert f1 == pytest.approx(f1_score(truth, row, average="macro"), abs=1e-7)


def test_item_resampling_equals_a_plain_loop_over_resamples() -> None:
    generator = np.random.default_rng(1)
    truth = generator.integers(0, CLASSES, 60)
    predicted = np.where(generator.random((1, 60)) < 0.7, truth, generator.integers(0, CLASSES, (1, 60)))
    looped = []
    for _ in range(1000):
        rows = generator.integers(0, 60, 60)
        looped.append(f1_score(truth[rows], predicted[0, rows], average="macro"))
    estimate = interval("macro_f1", truth, predicted, CLASSES, seed=0, resamples=4000)
    assert [estimate.low, estimate.high] == pytest.approx(np.quantile(looped, [0.025, 0.975]), abs=0.02)


def test_same_seed_same_interval_and_a_chunk_boundary_changes_nothing_but_draws() -> None:
    truth = np.arange(300) % CLASSES
    predicted = np.stack([np.roll(truth, shift) for shift in (0, 1)])
    for metric in METRICS:
        first, second = (interval(metric, truth, predicted, CLASSES, seed=7) for _ in range(2))
        assert first == second
        assert first.low <= first.mean <= first.high


def _simulated(generator: np.random.Generator, ease: np.ndarray, seeds: int, gain: float, spread: float) -> np.ndarray:
    """Correctness [S, N] of models on texts of some `ease` [N] that all of them share.

    The true accuracy is 0.7 + gain on average over texts and seeds, and varies by `spread` between seeds.
    """
    skill = gain + spread * generator.standard_normal((seeds, 1))
    return (generator.random((seeds, ease.size)) < np.clip(ease + skill, 0, 1)).astype(np.int64)


def _ease(generator: np.random.Generator, items: int) -> np.ndarray:
    """Chances between 0.15 and 0.85 that a text is understood, 0.7 on average: most are easy, some are hard."""
    return 0.15 + 0.7 * (generator.random(items) < 0.55 / 0.7)


@pytest.mark.parametrize(
    ("seeds", "spread", "width"), [(1, 0.0, 0.12), (3, 0.01, 0.13), (3, 0.03, 0.18), (3, 0.06, 0.35), (5, 0.03, 0.15)]
)
def test_intervals_cover_the_true_accuracy(seeds: int, spread: float, width: float) -> None:
    """Between 93 and 97 times in a hundred, and two more for what 400 trials leave open."""
    generator = np.random.default_rng(0)
    truth = np.ones(300, dtype=np.int64)
    trials, covered, widths = 400, 0, []
    # clipping draws the mean of models that vary much a little away from 0.7
    skill = spread * np.random.default_rng(1).standard_normal(100_000)
    true = (0.55 * np.clip(0.85 + skill, 0, 1) + 0.15 * np.clip(0.15 + skill, 0, 1)).mean() / 0.7
    for trial in range(trials):
        predicted = _simulated(generator, _ease(generator, 300), seeds, 0.0, spread)
        estimate = interval("accuracy", truth, predicted, 2, seed=trial, resamples=200)
        covered += estimate.low <= true <= estimate.high
        widths.append(estimate.high - estimate.low)
    assert 0.93 - 0.02 <= covered / trials <= 0.97 + 0.02
    assert np.mean(widths) < width


@pytest.mark.parametrize("seed", range(4))
def test_what_an_item_gives_to_macro_f1_is_what_leaving_it_out_takes(seed: int) -> None:
    generator = np.random.default_rng(seed)
    truth = generator.integers(0, 4, 25)
    truth[0] = 4  # a class with one item only
    predicted = np.where(generator.random((2, 25)) < 0.6, truth, generator.integers(0, 5, (2, 25)))
    found = contributions("macro_f1", truth, predicted, 6)
    for row, values in zip(predicted, found, strict=True):
        whole = f1_score(truth, row, average="macro")
        for item, value in enumerate(values):
            kept = np.arange(25) != item
            left = f1_score(truth[kept], row[kept], average="macro")
            assert value == pytest.approx(25 * whole - 24 * left, abs=1e-9)


def test_no_gain_is_rarely_called_a_gain_and_a_large_one_is_always_found() -> None:
    generator = np.random.default_rng(0)
    truth = np.ones(400, dtype=np.int64)
    verdicts: dict[float, list[str]] = {0.0: [], 0.12: []}
    for gain, found in verdicts.items():
        for trial in range(120):
            ease = _ease(generator, 400)
            first = _simulated(generator, ease, 3, 0.0, 0.01)
            second = _simulated(generator, ease, 3, gain, 0.01)
            found.append(paired_difference("accuracy", truth, first, second, 2, seed=trial, resamples=400).verdict)
    assert verdicts[0.0].count("cannot tell") / 120 >= 0.9
    assert verdicts[0.12].count("better") / 120 >= 0.97


def test_two_seeds_far_apart_say_that_one_cannot_tell_though_every_resample_shows_a_gain() -> None:
    """A difference may be negative: the interval's end is not zero because the resamples of two seeds never were."""
    truth = np.ones(400, dtype=np.int64)
    first = np.stack([np.arange(400) < right for right in (90, 150)]).astype(np.int64)
    second = np.stack([np.arange(400) < right for right in (200, 230)]).astype(np.int64)
    for apart in (
        paired_difference("accuracy", truth, first, second, 2, seed=0),
        on_any_score(lambda rows: float(rows.mean()), list(first[..., None]), list(second[..., None]), seed=0),
    ):
        assert apart.difference > 0.2
        assert apart.low < -0.05
        assert apart.p_value > 0.06
        assert holm_corrected([apart])[0]["verdict"] == apart.verdict == "cannot tell"


def test_pairing_sees_what_two_separate_intervals_cannot() -> None:
    """Two models that fail on the same hard texts, one of them on a few more."""
    hard = np.random.default_rng(0).random(400) < 0.3
    truth = np.ones(400, dtype=np.int64)
    second = (~hard).astype(np.int64)[None, :]
    first = second.copy()
    first[0, np.flatnonzero(second[0])[:12]] = 0
    before = interval("accuracy", truth, first, 2, seed=0)
    after = interval("accuracy", truth, second, 2, seed=0)
    assert before.high > after.low
    found = paired_difference("accuracy", truth, first, second, 2, seed=0)
    assert found.verdict == "better"
    assert found.difference == pytest.approx(12 / 400)
    assert paired_difference("accuracy", truth, second, first, 2, seed=0).verdict == "worse"
