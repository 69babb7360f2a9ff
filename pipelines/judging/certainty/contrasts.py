"""Intervals of contrasts: weighted sums of scores of any number of stages, on the same or on different items.

Stages that are scored on the same items are resampled together (paired), so that what makes an item hard cancels out;
groups with different items are independent, and their variances add up. Seeds are drawn independently on all sides, as
in `statistics`. Of two sides on the same items this is `resampling.paired_difference`, number for number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipelines.judging.certainty.resampling import RESAMPLES, contributions, resampled_means
from pipelines.judging.certainty.variance_components import (
    CONFIDENCE,
    ContrastVariance,
    contrast_variance,
    rescaled_interval,
    sum_of_independent,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score


@dataclass(frozen=True)
class WeightedSide:
    """The models of a stage in a contrast."""

    weight: float
    score: Score
    models: Sequence[NDArray[np.float64]]
    """Rows [N, …] of each seed."""
    items: str
    """Name of the items that the rows are about; sides with the same name are paired."""
    draws: int = 1
    """Number of pre-training draws; `models` has those of a draw together."""


@dataclass(frozen=True)
class ContrastInterval:
    """A contrast with its interval."""

    value: float
    low: float
    high: float
    variance: ContrastVariance | None = None
    """Where the width of the interval comes from; None where it follows otherwise."""


def contrast_interval(
    sides: Sequence[WeightedSide],
    seed: int,
    confidence: float = CONFIDENCE,
    bounds: tuple[float, float] = (float("-inf"), float("inf")),
    resamples: int = RESAMPLES,
) -> ContrastInterval:
    """Σ weight · mean over seeds of the score, over `sides`, with its interval."""
    import numpy as np

    groups: dict[str, list[WeightedSide]] = {}
    for side in sides:
        groups.setdefault(side.items, []).append(side)
    value, variances = 0.0, []
    drawn: NDArray[np.float64] = np.zeros(resamples)
    for number, group in enumerate(groups.values()):
        counts = [one.draws for one in group]
        means = resampled_means([(one.score, one.models) for one in group], seed + number, resamples, counts)
        for one, mean in zip(group, means, strict=True):
            drawn += one.weight * mean
        value += sum(one.weight * sum(map(one.score, one.models)) / len(one.models) for one in group)
        variances.append(
            contrast_variance([(one.weight, contributions(one.score, one.models, one.draws)) for one in group])
        )
    variance = sum_of_independent(variances)
    low, high = rescaled_interval(value, drawn, variance, *bounds, confidence)
    return ContrastInterval(value, low, high, variance)
