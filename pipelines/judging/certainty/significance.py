"""Whether a difference is more than chance, how many comparisons that was asked of, and how small a one could be seen.

    mcnemar            two models of one seed each, right or wrong        the benchmark's accuracy
    randomisation      any score, any number of seeds                     approximate randomisation over items
    holm               p-values of many comparisons → adjusted ones
    detectable         before a run: the smallest difference it would show
    settling           after a run that cannot tell: the seeds or items that would

Shapes: S seeds, N items, K statistics an item.
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
"""The chance with which a difference that `detectable` names is seen."""
DISAGREEMENT = 0.2
"""Share of items that one model answers rightly and the other wrongly, where nothing is known of them yet: what fine-tuned
encoders of one size differed by on the shipped tasks was 0.1 to 0.3."""
SEED_DEVIATION = 0.01
"""Standard deviation of a score between fine-tuning seeds, where nothing is known yet (Dodge et al. 2020, arXiv:2002.06305)."""
MOST = 1000
"""More seeds or times more items than this are never the way."""
PAYS: dict[Verdict, str] = {"better": "pays", "worse": "does not pay", "cannot tell": "cannot tell"}
"""Verdicts on what a stage adds."""


def mcnemar(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> float:
    """The exact two-sided p-value that two models are right equally often, of which items [N] each had right.

    McNemar 1947, doi:10.1007/BF02295996. Raises DataError when the items differ in number.
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
    """The two-sided p-value of the difference of `score` between two systems, S statistics [N, K] of each.

    Were there none, it would not matter which of the two gave an item's answers: they are exchanged item by item, for all
    seeds together (Noreen 1989; Riezler & Maxwell 2005, "On some pitfalls in automatic evaluation"). With several seeds, it
    is about these very models: how seeds vary is in the intervals. Raises DataError when seeds or items differ in number.
    """
    import numpy as np

    if len(first) != len(second):
        raise DataError(f"one system has {len(first)} seeds, the other {len(second)}: exchange needs as many of each")
    size = len(first[0])
    _same_items(size, len(second[0]))
    generator = np.random.default_rng(seed)

    def difference(exchanged: NDArray[np.bool_]) -> float:
        apart = 0.0
        for one, other in zip(first, second, strict=True):
            apart += score(np.where(exchanged[:, None], one, other)) - score(np.where(exchanged[:, None], other, one))
        return abs(apart) / len(first)

    observed = difference(np.zeros(size, dtype=bool))
    # rounding must not decide between equal differences
    larger = sum(difference(generator.random(size) < 0.5) >= observed - 1e-12 for _ in range(rounds))
    return (larger + 1) / (rounds + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """`p_values` of one family of comparisons, each adjusted so that any error among all of them stays under its level.

    Holm 1979, "A simple sequentially rejective multiple test procedure".
    """
    from statsmodels.stats.multitest import multipletests

    return [float(value) for value in multipletests(list(p_values), method="holm")[1]] if p_values else []


def holm_corrected(differences: Sequence[Difference], p_values: Sequence[float] | None = None) -> list[dict[str, Any]]:
    """The records of one family of comparisons: verdicts are those that stand when Holm's procedure holds the chance of any
    mistake among all of them to 5 %, and `p` is the adjusted one. `p_values` are those of the intervals unless given."""
    if p_values is None:
        p_values = [one.p_value for one in differences]
    records = []
    for apart, adjusted in zip(differences, holm(p_values), strict=True):
        side: Verdict = "better" if apart.difference > 0 else "worse"
        verdict = side if adjusted < 1 - CONFIDENCE else "cannot tell"
        records.append({**apart.record(), "p": adjusted, "verdict": verdict})
    return records


def minimum_detectable_difference(
    items: int, seeds: int, disagreement: float = DISAGREEMENT, deviation: float = SEED_DEVIATION
) -> float:
    """The smallest difference of two shares that a comparison on `items`, `seeds` of each side, shows four times in five.

    `disagreement` is the share of items that only one of the two has right, `deviation` that of a score between seeds.
    Paired items: Dror et al. 2018, "The Hitchhiker's Guide to Testing Statistical Significance in NLP".
    """
    from scipy.stats import norm, t

    of_seeds = 2 * deviation**2 / seeds if seeds > 1 else 0.0
    of_items = disagreement / items
    total = of_seeds + of_items
    upper = (1 + CONFIDENCE) / 2
    reach = of_items * t.ppf(upper, max(1, items - 1)) + (of_seeds * t.ppf(upper, 2 * seeds - 2) if of_seeds else 0.0)
    return float(total**0.5 * (reach / total + norm.ppf(POWER)))


@dataclass(frozen=True)
class RequiredSampleSizes:
    """What would make an interval that holds zero exclude it, were the difference what it seems; None where it never would."""

    seeds: int | None
    """Of each side, on the same items."""
    items: int | None
    """With the same seeds."""


def required_sample_sizes(
    difference: float, found: ContrastVariance, seeds: int, items: int, among: int = 1
) -> RequiredSampleSizes:
    """How many seeds, or how many items, would settle a `difference` that varies as `found`, of `seeds` and `items`.

    `among` is how many comparisons are unsettled together: Holm's procedure asks p < 5 % / `among` of the first of them.
    """

    def settles(of_seeds: float, of_items: float) -> bool:
        freedom = found.seed_freedom * (seeds * of_seeds - 1) / (seeds - 1) if seeds > 1 else 1.0
        then = ContrastVariance(
            found.items / of_items, found.item_freedom * of_items, found.seeds / of_seeds, max(1.0, freedom)
        )
        return then.p_value(difference) * among < 1 - CONFIDENCE

    return RequiredSampleSizes(
        _least(lambda times: settles(times, 1.0), seeds) if found.seeds > 0 else None,
        _least(lambda times: settles(1.0, times), items),
    )


def _least(settles: Callable[[float], bool], now: int) -> int | None:
    """The least number at or above `now` that settles, among those up to `MOST` times as many."""
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
            "judge them in one evaluate stage"
        )
