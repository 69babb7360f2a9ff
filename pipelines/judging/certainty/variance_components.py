"""Variance of a contrast of scores, when every seed of every model answers the same items.

A score is the mean of contributions u[s, i] of seed s on item i; for scores that are no mean (F1, a correlation) these
are its jackknife pseudo-values (Efron & Tibshirani 1993, §11.5), which for a mean equal its terms. Seeds and items are
crossed random effects. Their variances are estimated from the mean squares of a two-way layout with random rows and
columns (Searle, Casella & McCulloch 1992, §4.3); a negative component is set to zero.

Three seeds say little about the variance between seeds: a percentile interval over them covers 85 % instead of 95 %. So
the interval has the width of Student's t, each variance with its own degrees of freedom, weighted as by Cochran & Cox
(1957, §4.14). The bootstrap decides its shape: its resamples are rescaled to that width around the observed value.

Where a model was fine-tuned under S seeds after each of D draws of its pre-training, draws are crossed with seeds and
items: u[d, s, i]. What draws add is estimated from the means over seeds, so that the interaction of draws and seeds is
part of it, with the few degrees of freedom of the draws.

Shapes: D draws, S seeds, N items (or groups of items), R resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CONFIDENCE = 0.95
GROUPS = 500
"""With more items than this, the jackknife leaves out groups instead of single items."""


@dataclass(frozen=True)
class ContrastVariance:
    """Variance of a contrast, by source."""

    items: float
    """Variance due to the choice of items."""
    item_freedom: float
    """Degrees of freedom of `items`."""
    seeds: float
    """Variance due to the choice of seeds; 0 if each side has one seed, from which it cannot be estimated."""
    seed_freedom: float
    """Degrees of freedom of `seeds`."""
    draws: float = 0.0
    """Variance due to the draws of pre-training; 0 if each side has one, from which it cannot be estimated."""
    draw_freedom: float = 1.0
    """Degrees of freedom of `draws`."""

    @property
    def total(self) -> float:
        """Variance of the contrast."""
        return self.items + self.seeds + self.draws

    @property
    def half_width(self) -> float:
        """Half the width of the 95 % interval."""
        return self.half_width_at(CONFIDENCE)

    def half_width_at(self, confidence: float) -> float:
        """Half the width of the interval that contains the contrast with this `confidence`."""
        return self._reach((1 - confidence) / 2)

    def p_value(self, difference: float) -> float:
        """Two-sided p-value: one minus the confidence of the widest interval around `difference` that excludes zero."""
        from scipy.optimize import brentq

        if difference == 0:
            return 1.0
        if self.total == 0:
            return 0.0
        least = 1e-12
        if self._reach(least) < abs(difference):
            return 2 * least
        return float(2 * brentq(lambda tail: self._reach(tail) - abs(difference), least, 0.5))

    def _reach(self, tail: float) -> float:
        """Half the width of the interval that leaves out a share `tail` at each end."""
        from scipy.stats import t

        total = self.total
        if total == 0:
            return 0.0
        share = self.items * t.isf(tail, self.item_freedom)
        if self.seeds > 0:
            share += self.seeds * t.isf(tail, self.seed_freedom)
        if self.draws > 0:
            share += self.draws * t.isf(tail, self.draw_freedom)
        return float(total**0.5 * share / total)


def contrast_variance(sides: Sequence[tuple[float, NDArray[np.float64]]]) -> ContrastVariance:
    """Variance of the contrast Σ weight · mean(u) over `sides`, each (weight, u [S, N] or u [D, S, N]); all sides have
    the same items."""
    crossed = [(weight, u if u.ndim == 3 else u[None]) for weight, u in sides]
    items = crossed[0][1].shape[2]
    contrast = sum(weight * u.mean(axis=(0, 1)) for weight, u in crossed)
    of_items = float(contrast.var(ddof=1)) / items if items > 1 else 0.0
    of_seeds, of_draws = [], []
    for weight, u in crossed:
        draws, seeds = u.shape[:2]
        if draws > 1:
            of_draws.append((weight**2 * _between(u.mean(axis=1)), draws - 1))
        if seeds > 1:
            # with several draws, the interaction is in the variance of the draws already
            shared = _interaction(u) if draws > 1 else 0.0
            of_seeds.append((weight**2 * max(0.0, _between(u.mean(axis=0)) - shared), seeds - 1))
    return ContrastVariance(of_items, max(1, items - 1), *_added(of_seeds), *_added(of_draws))


def _between(u: NDArray[np.float64]) -> float:
    """Variance of the mean of `u` [S, N] that is due to its rows: what the mean square between them exceeds that of the
    rest by."""
    rows, items = u.shape
    mean = u.mean()
    of_rows, of_columns = u.mean(axis=1) - mean, u.mean(axis=0) - mean
    rest = u - mean - of_rows[:, None] - of_columns
    between = items * float((of_rows**2).sum()) / (rows - 1)
    # of a single item, all variance is between rows
    within = float((rest**2).sum()) / ((rows - 1) * (items - 1)) if items > 1 else 0.0
    return float(max(0.0, (between - within) / (items * rows)))


def _interaction(u: NDArray[np.float64]) -> float:
    """Variance of the mean of `u` [D, S, N] that is due to the interaction of draws and seeds."""
    draws, seeds, items = u.shape
    rest = u - u.mean(axis=1, keepdims=True) - u.mean(axis=0, keepdims=True) + u.mean(axis=(0, 1), keepdims=True)
    cells = rest.mean(axis=2)
    freedom = (draws - 1) * (seeds - 1)
    between = items * float((cells**2).sum()) / freedom
    within = float(((rest - cells[:, :, None]) ** 2).sum()) / (freedom * (items - 1)) if items > 1 else 0.0
    return float(max(0.0, (between - within) / (items * draws * seeds)))


def sum_of_independent(variances: Sequence[ContrastVariance]) -> ContrastVariance:
    """Variance of the sum of contrasts over different items: degrees of freedom by Satterthwaite (1946), source by
    source."""
    if len(variances) == 1:
        return variances[0]
    items, item_freedom = _added([(one.items, one.item_freedom) for one in variances])
    seeds, seed_freedom = _added([(one.seeds, one.seed_freedom) for one in variances])
    draws, draw_freedom = _added([(one.draws, one.draw_freedom) for one in variances])
    return ContrastVariance(items, item_freedom, seeds, seed_freedom, draws, draw_freedom)


def _added(components: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Sum of independent variances, and its degrees of freedom."""
    total = sum(variance for variance, _ in components)
    spread = sum(variance**2 / freedom for variance, freedom in components)
    return total, total**2 / spread if spread else 1.0


def rescaled_interval(
    observed: float,
    resampled: NDArray[np.float64],
    variance: ContrastVariance,
    least: float,
    most: float,
    confidence: float = CONFIDENCE,
) -> tuple[float, float]:
    """The interval around `observed`: the 95 % quantiles of `resampled` [R], rescaled to the width that `variance`
    gives an interval of this `confidence`.

    The ends are clipped to `least` and `most`, the smallest and largest possible value.
    """
    import numpy as np
    from scipy.stats import norm

    tail = (1 - CONFIDENCE) / 2
    centre, deviation = float(resampled.mean()), float(resampled.std())
    if deviation == 0:
        return observed, observed
    factor = variance.half_width_at(confidence) / (float(norm.ppf(1 - tail)) * deviation)
    low, high = np.quantile(resampled, [tail, 1 - tail])
    first, last = observed + (low - centre) * factor, observed + (high - centre) * factor
    return float(max(least, min(first, observed))), float(min(most, max(last, observed)))


def pseudo_values(
    score: Callable[[NDArray[np.float64]], float], statistics: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Jackknife pseudo-values [G] of `score` over the rows of `statistics` [N, K], leaving out single items.

    With more than `GROUPS` items, item i is in group i mod `GROUPS`, and whole groups are left out.
    """
    import numpy as np

    size = len(statistics)
    groups = min(size, GROUPS)
    whole = score(statistics)
    if size == 1:  # nothing can be left out
        return np.asarray([whole])
    member = np.arange(size) % groups
    left = np.asarray([score(statistics[member != group]) for group in range(groups)])
    result: NDArray[np.float64] = groups * whole - (groups - 1) * left
    return result
