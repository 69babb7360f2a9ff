"""Significance tests, correction for multiple comparisons, and statistical power.

    mcnemar                         two models of one seed each, right or wrong (accuracy)
    randomisation                   any score, any number of seeds: approximate randomisation over items
    holm                            p-values of many comparisons → adjusted p-values
    minimum_detectable_difference   before a run: the smallest difference that it would show
    required_sample_sizes           after an undecided run: the seeds or items that would decide it

Shapes: S seeds, N items, K statistics per item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.errors import DataError
from pipelines.judging.certainty.variance_components import CONFIDENCE, ContrastVariance

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.certainty.statistics import Difference, Verdict

ROUNDS = 2000
POWER = 0.8
"""Probability with which a difference as large as `minimum_detectable_difference` is detected."""
DISAGREEMENT = 0.2
"""Default share of items that only one of two models has right: 0.1 to 0.3 between fine-tuned encoders of one size on
the shipped tasks."""
SEED_DEVIATION = 0.01
"""Default standard deviation of a score between fine-tuning seeds (Dodge et al. 2020, arXiv:2002.06305)."""
MOST = 1000
"""Upper bound of the search, as a multiple of the present number of seeds or items."""
PAYS: dict[Verdict, str] = {"better": "pays", "worse": "does not pay", "cannot tell": "cannot tell"}
"""Verdicts on the contribution of a stage."""


def mcnemar(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """Exact two-sided p-value of the hypothesis that two models are right equally often; `first`, `second` [N]: right
    or not.

    McNemar 1947, doi:10.1007/BF02295996. Raises DataError when the numbers of items differ.
    """
    from statsmodels.stats.contingency_tables import mcnemar as exact

    _same_items(len(first), len(second))
    table = [
        [int((first & second).sum()), int((first & ~second).sum())],
        [int((~first & second).sum()), int((~first & ~second).sum())],
    ]
    return float(exact(table, exact=True).pvalue)


def randomisation(
    score: Score,
    first: Sequence[NDArray[np.float64]],
    second: Sequence[NDArray[np.float64]],
    seed: int,
    rounds: int = ROUNDS,
) -> float:
    """Two-sided p-value of the difference of `score` between two systems, each with S statistics [N, K].

    Under the null hypothesis the two answers to an item are exchangeable: they are exchanged item by item, for all
    seeds together (approximate randomisation: Noreen 1989; Riezler & Maxwell 2005, "On some pitfalls in automatic
    evaluation"). The p-value is conditional on these models, also with several seeds: the variance between seeds is in
    the intervals. Raises DataError when the numbers of seeds or items differ.
    """
    import numpy as np

    if len(first) != len(second):
        raise DataError(
            f"one system has {len(first)} seeds, the other {len(second)}: the test needs the same number of each"
        )
    size = len(first[0])
    _same_items(size, len(second[0]))
    generator = np.random.default_rng(seed)

    def difference(exchanged: NDArray[np.bool_]) -> float:
        total = 0.0
        for one, other in zip(first, second, strict=True):
            total += score(np.where(exchanged[:, None], one, other)) - score(np.where(exchanged[:, None], other, one))
        return abs(total) / len(first)

    observed = difference(np.zeros(size, dtype=bool))
    # rounding must not decide between equal differences
    larger = sum(difference(generator.random(size) < 0.5) >= observed - 1e-12 for _ in range(rounds))
    return (larger + 1) / (rounds + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values of one family of comparisons, controlling the family-wise error rate.

    Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    from statsmodels.stats.multitest import multipletests

    return [float(value) for value in multipletests(list(p_values), method="holm")[1]] if p_values else []


def holm_corrected(differences: Sequence[Difference], p_values: Sequence[float] | None = None) -> list[dict[str, Any]]:
    """Records of one family of comparisons, with verdicts after Holm's correction at a family-wise error rate of 5 %.

    `p` is the adjusted p-value. `p_values` default to those of the intervals.
    """
    if p_values is None:
        p_values = [each.p_value for each in differences]
    records = []
    for difference, adjusted in zip(differences, holm(p_values), strict=True):
        side: Verdict = "better" if difference.difference > 0 else "worse"
        verdict = side if adjusted < 1 - CONFIDENCE else "cannot tell"
        records.append({**difference.record(), "p": adjusted, "verdict": verdict})
    return records


def minimum_detectable_difference(
    items: int,
    seeds: int,
    disagreement: float = DISAGREEMENT,
    deviation: float = SEED_DEVIATION,
    draws: int = 1,
) -> float:
    """Smallest difference of two shares that a comparison on `items`, with `seeds` on each side after each of `draws`
    draws of pre-training, detects with power `POWER`.

    `disagreement` is the share of items that only one of the two has right, `deviation` the standard deviation of a
    score between seeds, and between draws. Paired items: Dror et al. 2018, "The Hitchhiker's Guide to Testing
    Statistical Significance in NLP".
    """
    return smallest_effect(assumed_variance(items, seeds, draws, disagreement, deviation))


def assumed_variance(
    items: int, seeds: int, draws: int = 1, disagreement: float = DISAGREEMENT, deviation: float = SEED_DEVIATION
) -> ContrastVariance:
    """The variance of the difference of two shares, before anything was measured: see above."""
    return ContrastVariance(
        disagreement / items,
        max(1, items - 1),
        2 * deviation**2 / seeds if seeds > 1 else 0.0,
        max(1, 2 * seeds - 2),
        2 * deviation**2 / draws if draws > 1 else 0.0,
        max(1, 2 * draws - 2),
    )


def smallest_effect(variance: ContrastVariance, confidence: float = CONFIDENCE) -> float:
    """Smallest contrast whose interval of this `confidence` excludes zero with power `POWER`."""
    from scipy.stats import norm

    return float(variance.half_width_at(confidence) + variance.total**0.5 * norm.ppf(POWER))


@dataclass(frozen=True)
class RequiredSampleSizes:
    """Sample sizes at which an interval that contains zero would exclude it, if the observed difference is the true
    one; None if none would."""

    seeds: int | None
    """Seeds of each side, on the same items."""
    items: int | None
    """Items, with the same seeds."""


def required_sample_sizes(
    difference: float, variance: ContrastVariance, seeds: int, items: int, comparisons: int = 1
) -> RequiredSampleSizes:
    """Number of seeds, or of items, that would make an observed `difference` significant.

    `variance` is that of the difference with the present `seeds` and `items`. `comparisons` is the number of undecided
    comparisons of the family: Holm's procedure requires p < 5 % / `comparisons` of the first of them.
    """

    def settles(of_seeds: float, of_items: float) -> bool:
        freedom = variance.seed_freedom * (seeds * of_seeds - 1) / (seeds - 1) if seeds > 1 else 1.0
        then = ContrastVariance(
            variance.items / of_items, variance.item_freedom * of_items, variance.seeds / of_seeds, max(1.0, freedom)
        )
        return then.p_value(difference) * comparisons < 1 - CONFIDENCE

    return RequiredSampleSizes(
        _least(lambda times: settles(times, 1.0), seeds) if variance.seeds > 0 else None,
        _least(lambda times: settles(1.0, times), items),
    )


def _least(settles: Callable[[float], bool], now: int) -> int | None:
    """The smallest number from `now` up to `MOST` times `now` that settles the comparison; None if none does."""
    low, high = now, now * MOST
    if not settles(high / now):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if settles(middle / now) else (middle + 1, high)
    return low


def _same_items(first: int, second: int) -> None:
    if first != second:
        raise DataError(
            f"one system answered {first} test items, the other {second}: a comparison needs the same items for both; "
            "evaluate them in one evaluate stage"
        )
