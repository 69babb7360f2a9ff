"""Judgement of a claim: the interval of every contrast of its form, and the verdict on all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pipelines.errors import DataError
from pipelines.judging.certainty.contrasts import ContrastInterval, WeightedSide, contrast_interval
from pipelines.judging.certainty.resampling import interval
from pipelines.judging.certainty.spread import spread_quotient
from pipelines.judging.certainty.variance_components import CONFIDENCE
from pipelines.judging.claims import ClaimForm, ComparedSide, Contrast, Verdict
from pipelines.judging.figures import RecordedFigure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.certainty.statistics import Estimate

SMALLEST = 1e-12
"""Bound on a resampled figure before its logarithm is taken."""


@dataclass(frozen=True)
class MeasuredSide:
    """What was measured of the models of a side."""

    samples: Sequence[NDArray[np.float64]]
    """Rows [N, …] of each seed."""
    items: str
    """Name of the items that the rows are about; sides with the same name are paired."""
    score: Score
    """Rows of any items → the figure, as the task family of this side computes it."""
    draws: int = 1
    """Number of pre-training draws; `samples` has the seeds of a draw together."""

    def weighted(self, weight: float, score: Score, figure: RecordedFigure) -> WeightedSide:
        """This side in a contrast of `score`."""
        draws = 1 if figure.exact else self.draws
        return WeightedSide(weight, score, self.of_seeds(figure), self.items, draws)

    def of_seeds(self, figure: RecordedFigure) -> Sequence[NDArray[np.float64]]:
        """The rows of each seed; of the first alone for a figure that no seed changes."""
        return self.samples[:1] if figure.exact else self.samples


@dataclass(frozen=True)
class JudgedContrast:
    """A contrast with its interval and verdict."""

    contrast: Contrast
    interval: ContrastInterval
    """Quotients where the form compares these, else differences."""
    at_least: float
    """What it must exceed, in the same unit as the interval."""
    verdict: Verdict

    def record(self) -> dict[str, Any]:
        """JSON values."""
        effect = self.interval
        return {
            "label": self.contrast.label,
            "effect": effect.value,
            "low": effect.low,
            "high": effect.high,
            "at_least": self.at_least,
            "verdict": self.verdict,
            "variance": None if effect.variance is None else asdict(effect.variance),
        }


def verdict_of(low: float, high: float, at_least: float, *, exact: bool = False, inclusive: bool = False) -> Verdict:
    """Whether an interval is above the claimed minimum, below it, or contains it.

    An `exact` effect has no interval: it is above the minimum, or it equals it and the minimum is `inclusive`, or not.
    """
    if exact:
        equal = math.isclose(low, at_least, rel_tol=1e-9, abs_tol=1e-12)
        return "reproduced" if (inclusive if equal else low > at_least) else "not reproduced"
    return "reproduced" if low > at_least else "not reproduced" if high < at_least else "cannot tell at this scale"


def verdict_of_all(verdicts: Sequence[Verdict]) -> Verdict:
    """A claim holds if every contrast does, and does not hold if one does not."""
    if "not reproduced" in verdicts:
        return "not reproduced"
    return "reproduced" if set(verdicts) == {"reproduced"} else "cannot tell at this scale"


def judge(
    form: ClaimForm, figure: RecordedFigure, lower: bool, measured: Callable[[ComparedSide], MeasuredSide], seed: int
) -> list[JudgedContrast]:
    """The contrasts of `form` on a figure of which less is better if `lower`, at a family-wise confidence of 95 %.

    Of a form that compares the spread over seeds, a contrast has two sides, that of the baseline first.

    Raises DataError for sides that were measured on different numbers of items, for a quotient of figures that are not
    above zero, and for seeds without spread where this is compared.
    """
    contrasts = form.contrasts()
    confidence = 1 - (1 - CONFIDENCE) / len(contrasts)
    judged = []
    for contrast in contrasts:
        sides = []
        for weight, side in contrast.terms:
            one = measured(side)
            logarithmic = form.ratio and not form.of_spread
            if logarithmic and any(one.score(rows) <= 0 for rows in one.samples):
                raise DataError(f"{figure.name} of {side.stage} is not above zero, so it has no quotient: use greater")
            score = _logarithm(one.score) if logarithmic else one.score
            sides.append(one.weighted(-weight if lower else weight, score, figure))
        _same_items(sides, figure)
        if form.of_spread:
            baseline, system = ([one.score(rows) for rows in one.models] for one in sides)
            effect = spread_quotient(baseline, system, confidence)
        else:
            effect = contrast_interval(sides, seed, confidence, _bounds(sides, figure, form.ratio))
        verdict = verdict_of(
            effect.low, effect.high, contrast.at_least, exact=figure.exact, inclusive=contrast.inclusive
        )
        at_least = contrast.at_least
        if form.ratio:
            value, low, high = (math.exp(one) for one in (effect.value, effect.low, effect.high))
            effect = replace(effect, value=value, low=low, high=high)
            at_least = math.exp(at_least)
        judged.append(JudgedContrast(contrast, effect, at_least, verdict))
    return judged


def estimate(figure: RecordedFigure, side: MeasuredSide, seed: int) -> Estimate:
    """The figure of a side: mean over seeds, each seed, 95 % interval over seeds and items."""
    least, most = figure.bounds
    # where a figure may be negative, whether its interval ends at zero depends on whether it ever is
    own, lowest = side.weighted(1.0, side.score, figure), None if least == -most else least
    return interval(side.score, own.models, seed, reach=most, least=lowest, draws=own.draws)


def _logarithm(score: Score) -> Score:
    return lambda rows: math.log(max(score(rows), SMALLEST))


def _bounds(sides: Sequence[WeightedSide], figure: RecordedFigure, ratio: bool) -> tuple[float, float]:
    """The smallest and largest possible value of a contrast; a quotient may be any."""
    if ratio or not all(map(math.isfinite, figure.bounds)):
        return float("-inf"), float("inf")
    ends = [[one.weight * bound for bound in figure.bounds] for one in sides]
    return sum(map(min, ends)), sum(map(max, ends))


def _same_items(sides: Sequence[WeightedSide], figure: RecordedFigure) -> None:
    sizes: dict[str, set[int]] = {}
    for side in sides:
        sizes.setdefault(side.items, set()).update(map(len, side.models))
    if several := next((sorted(one) for one in sizes.values() if len(one) > 1), None):
        numbers = " and ".join(map(str, several))
        raise DataError(f"{figure.name} was measured on {numbers} items, so that its models cannot be compared")
