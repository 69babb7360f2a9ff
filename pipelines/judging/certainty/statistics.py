"""Uncertainty of scores: bootstrap intervals over fine-tuning seeds and test items, vectorised over resamples.

A score varies with the sample of test texts and with the seed of the fine-tuning. Both are resampled independently,
since every seed is scored on the same texts (the "pigeonhole" bootstrap of crossed factors: Owen 2007,
doi:10.1214/07-AOAS122; for test sets in NLP: Koehn 2004, "Statistical significance tests for machine translation
evaluation"). N items are drawn with replacement out of N, but only S - 1 seeds out of S: with S = 3, drawing S of S
would show two thirds of the variance between seeds, S - 1 show all of it (Rao & Wu 1988,
doi:10.1080/01621459.1988.10478591). The resamples give the interval its shape, the variances of seeds and items its
width (`pipelines.judging.certainty.variance_components`).

Shapes: S seeds, N items, C classes, R resamples.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pipelines.judging.certainty.variance_components import CONFIDENCE, contrast_variance, rescaled_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 2000
Metric = Literal["accuracy", "macro_f1"]
METRICS: tuple[Metric, ...] = ("accuracy", "macro_f1")
Verdict = Literal["better", "worse", "cannot tell"]

# draws held in memory at once: 32 MB as int64
_CHUNK_VALUES = 4_000_000


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds with its 95 % interval."""

    mean: float
    low: float
    high: float
    per_seed: tuple[float, ...]

    def record(self) -> dict[str, object]:
        return {"mean": self.mean, "low": self.low, "high": self.high, "per_seed": list(self.per_seed)}


@dataclass(frozen=True)
class Difference:
    """The second score minus the first, with its 95 % interval."""

    difference: float
    low: float
    high: float

    @property
    def verdict(self) -> Verdict:
        """`better` or `worse` only if the interval excludes zero."""
        return "better" if self.low > 0 else "worse" if self.high < 0 else "cannot tell"

    @property
    def p_value(self) -> float:
        """Two-sided p-value of the normal distribution whose interval has the same end on the side of zero.

        It is below 5 % exactly when the interval excludes zero.
        """
        from scipy.stats import norm

        if self.difference == 0:
            return 1.0
        reach = self.difference - self.low if self.difference > 0 else self.high - self.difference
        if reach <= 0:
            return 0.0
        return float(2 * norm.sf(abs(self.difference) / reach * norm.isf((1 - CONFIDENCE) / 2)))

    def record(self) -> dict[str, object]:
        return {"difference": self.difference, "low": self.low, "high": self.high, "verdict": self.verdict}


def score(metric: Metric, truth: NDArray[np.int64], predicted: NDArray[np.int64], classes: int) -> NDArray[np.float64]:
    """`metric` of each row of `predicted` [S, N] against `truth` [N]: [S].

    Macro-F1 averages, as in scikit-learn, over the classes that occur in the truth or in the predictions of that row.
    """
    import numpy as np

    weights = np.ones((1, truth.size), dtype=np.float32)
    result: NDArray[np.float64] = _scores(metric, weights, truth, predicted, classes)[0]
    return result


def interval(
    metric: Metric,
    truth: NDArray[np.int64],
    predicted: NDArray[np.int64],
    classes: int,
    seed: int,
    resamples: int = RESAMPLES,
) -> Estimate:
    """Mean over seeds of `metric` with its 95 % interval. With one seed, the interval is over items only."""
    import numpy as np

    generator = np.random.default_rng(seed)
    drawn = seed_weights(generator, len(predicted), resamples)
    means = np.empty(resamples)
    for rows, weights in _item_weights(generator, truth.size, resamples):
        means[rows] = (_scores(metric, weights, truth, predicted, classes) * drawn[rows]).sum(axis=1)
    observed = score(metric, truth, predicted, classes)
    variance = contrast_variance([(1.0, contributions(metric, truth, predicted, classes))])
    low, high = rescaled_interval(float(observed.mean()), means, variance, least=0.0, most=1.0)
    return Estimate(float(observed.mean()), low, high, tuple(float(value) for value in observed))


def paired_difference(
    metric: Metric,
    truth: NDArray[np.int64],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
    classes: int,
    seed: int,
    resamples: int = RESAMPLES,
) -> Difference:
    """Mean of `second` [S2, N] minus mean of `first` [S1, N] with its 95 % interval.

    Both are scored on the same resampled texts (paired); their seeds are drawn independently, since two stages that
    share a seed number share no noise.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    drawn_first = seed_weights(generator, len(first), resamples)
    drawn_second = seed_weights(generator, len(second), resamples)
    differences = np.empty(resamples)
    for rows, weights in _item_weights(generator, truth.size, resamples):
        before = (_scores(metric, weights, truth, first, classes) * drawn_first[rows]).sum(axis=1)
        after = (_scores(metric, weights, truth, second, classes) * drawn_second[rows]).sum(axis=1)
        differences[rows] = after - before
    observed = score(metric, truth, second, classes).mean() - score(metric, truth, first, classes).mean()
    variance = contrast_variance(
        [(-1.0, contributions(metric, truth, first, classes)), (1.0, contributions(metric, truth, second, classes))]
    )
    low, high = rescaled_interval(float(observed), differences, variance, least=-1.0, most=1.0)
    return Difference(float(observed), low, high)


def contributions(
    metric: Metric, truth: NDArray[np.int64], predicted: NDArray[np.int64], classes: int
) -> NDArray[np.float64]:
    """Contribution [S, N] of each item to `metric`: exact for accuracy, jackknife pseudo-values for macro-F1."""
    import numpy as np

    if metric == "accuracy":
        correct: NDArray[np.float64] = (predicted == truth).astype(np.float64)
        return correct
    size = truth.size
    support = np.bincount(truth, minlength=classes)
    rows = []
    for row in predicted:
        right = row == truth
        hits = np.bincount(truth[right], minlength=classes)
        occurring = support + np.bincount(row, minlength=classes)
        whole = _f1(hits, occurring)
        # without an item only the classes that it is, and that it was taken for, have another F1, or none
        touched = np.where(
            right,
            _f1(hits - 1, occurring - 2)[truth] - whole[truth],
            _f1(hits, occurring - 1)[truth] - whole[truth] + _f1(hits, occurring - 1)[row] - whole[row],
        )
        gone = np.where(
            right, occurring[truth] == 2, (occurring[truth] == 1).astype(int) + (occurring[row] == 1).astype(int)
        )
        present = int((occurring > 0).sum())
        left = (whole.sum() + touched) / np.maximum(present - gone, 1)
        rows.append(size * whole.sum() / present - (size - 1) * left)
    result: NDArray[np.float64] = np.stack(rows)
    return result


def _f1(hits: NDArray[np.int64], occurring: NDArray[np.int64]) -> NDArray[np.float64]:
    import numpy as np

    result: NDArray[np.float64] = np.divide(2.0 * hits, occurring, out=np.zeros(hits.shape), where=occurring > 0)
    return result


def seed_weights(generator: np.random.Generator, seeds: int, resamples: int) -> NDArray[np.float64]:
    """Share [R, S] of each seed in each resample; rows sum to one."""
    import numpy as np

    if seeds == 1:
        return np.ones((resamples, 1))
    draws = seeds - 1
    result: NDArray[np.float64] = generator.multinomial(draws, np.full(seeds, 1 / seeds), size=resamples) / draws
    return result


def model_weights(generator: np.random.Generator, draws: int, seeds: int, resamples: int) -> NDArray[np.float64]:
    """Share [R, D · S] of each model in each resample, the models of a draw together: draws and seeds are drawn
    independently."""
    import numpy as np

    of_draws = seed_weights(generator, draws, resamples) if draws > 1 else np.ones((resamples, 1))
    weights = of_draws[:, :, None] * seed_weights(generator, seeds, resamples)[:, None, :]
    return weights.reshape(resamples, draws * seeds)


def _item_weights(
    generator: np.random.Generator, items: int, resamples: int
) -> Iterator[tuple[slice, NDArray[np.float32]]]:
    """Number of times each item was drawn in each resample, [chunk, N], chunk by chunk."""
    import numpy as np

    chunk = max(1, _CHUNK_VALUES // items)
    for first in range(0, resamples, chunk):
        count = min(chunk, resamples - first)
        drawn = generator.integers(0, items, size=(count, items))
        drawn += np.arange(count)[:, None] * items
        weights = np.bincount(drawn.ravel(), minlength=count * items).reshape(count, items)
        yield slice(first, first + count), weights.astype(np.float32)


def _scores(
    metric: Metric, weights: NDArray[np.float32], truth: NDArray[np.int64], predicted: NDArray[np.int64], classes: int
) -> NDArray[np.float64]:
    """`metric` [R, S] of every seed under every weighting of the items."""
    import numpy as np

    if metric == "accuracy":
        correct = (predicted == truth).astype(np.float32)
        accuracy: NDArray[np.float64] = (weights @ correct.T).astype(np.float64) / weights.sum(axis=1, keepdims=True)
        return accuracy
    every = np.arange(classes)
    support = weights @ (truth[:, None] == every).astype(np.float32)
    columns = []
    for row in predicted:
        chosen = (row[:, None] == every).astype(np.float32)
        hits = weights @ (chosen * (row == truth)[:, None])
        occurring = (support + weights @ chosen).astype(np.float64)
        f1 = np.divide(2 * hits, occurring, out=np.zeros_like(occurring), where=occurring > 0)
        columns.append(f1.sum(axis=1) / (occurring > 0).sum(axis=1))
    return np.stack(columns, axis=1)
