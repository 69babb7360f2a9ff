"""Intervals for any task family: the bootstrap over seeds and examples of `statistics`, on a family's own statistics.

Shapes: D draws of pre-training, one unless said otherwise, S seeds, N examples, K statistics per example, R resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from pipelines.judging.certainty.statistics import Difference, Estimate, model_weights
from pipelines.judging.certainty.variance_components import contrast_variance, pseudo_values, rescaled_interval

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RESAMPLES = 1000
Score: TypeAlias = "Callable[[NDArray[np.float64]], float]"
"""Statistics [n, K] of any examples → the score over them."""


def interval(
    score: Score,
    models: Sequence[NDArray[np.float64]],
    seed: int,
    resamples: int = RESAMPLES,
    reach: float = 1.0,
    least: float | None = None,
    draws: int = 1,
) -> Estimate:
    """Mean of `score` over `models` (D · S arrays of statistics [N, K], one per seed, those of a draw together), at
    most `reach`, with its 95 % interval.

    `least` is the smallest possible value of `score`; None means zero if no resample is negative, else -`reach`.
    """
    observed = [score(statistics) for statistics in models]
    means = resampled_means([(score, models)], seed, resamples, [draws])[0]
    mean = sum(observed) / len(observed)
    if least is None:
        least = 0.0 if means.min() >= 0 <= mean else -reach
    variance = contrast_variance([(1.0, contributions(score, models, draws))])
    low, high = rescaled_interval(mean, means, variance, least, reach)
    return Estimate(mean, low, high, tuple(observed))


def paired_difference(
    score: Score,
    first: Sequence[NDArray[np.float64]],
    second: Sequence[NDArray[np.float64]],
    seed: int,
    resamples: int = RESAMPLES,
    reach: float = 1.0,
) -> Difference:
    """Mean of `score` over `second` minus its mean over `first`, with its 95 % interval.

    Both are scored on the same resampled examples (paired); their seeds are drawn independently, as in `statistics`.
    """
    before, after = resampled_means([(score, first), (score, second)], seed, resamples)
    observed = sum(map(score, second)) / len(second) - sum(map(score, first)) / len(first)
    variance = contrast_variance([(-1.0, contributions(score, first)), (1.0, contributions(score, second))])
    low, high = rescaled_interval(observed, after - before, variance, least=-2 * reach, most=2 * reach)
    return Difference(observed, low, high)


def contributions(score: Score, models: Sequence[NDArray[np.float64]], draws: int = 1) -> NDArray[np.float64]:
    """Contribution of each item, or group of items, to `score`: [S, G], and [D, S, G] of several draws."""
    import numpy as np

    stacked = np.stack([pseudo_values(score, statistics) for statistics in models])
    return stacked if draws == 1 else stacked.reshape(draws, len(models) // draws, -1)


def resampled_means(
    sides: Sequence[tuple[Score, Sequence[NDArray[np.float64]]]],
    seed: int,
    resamples: int,
    draws: Sequence[int] | None = None,
) -> list[NDArray[np.float64]]:
    """Means [R] over drawn seeds of the score on drawn examples, for each side; all sides share the drawn examples.

    `draws` are the numbers of pre-training draws of the sides; None: one each.
    """
    import numpy as np

    generator = np.random.default_rng(seed)
    weights = [
        model_weights(generator, of_side, len(models) // of_side, resamples)
        for of_side, (_, models) in zip(draws or [1] * len(sides), sides, strict=True)
    ]
    size = len(sides[0][1][0])
    means = [np.zeros(resamples) for _ in sides]
    for turn in range(resamples):
        drawn = generator.integers(0, size, size)
        for side, (score, models) in enumerate(sides):
            for model in map(int, np.flatnonzero(weights[side][turn])):
                means[side][turn] += weights[side][turn, model] * score(models[model][drawn])
    return means
