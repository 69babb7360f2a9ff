"""Power before cost: the smallest effect that a measurement of a claim would show, four times in five.

How far models, seeds and draws are apart is taken from earlier records of the same figure on the same data, scaled to
the numbers of this measurement; without any, of shares, from binomial bounds (`significance.assumed_variance`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median, variance
from typing import Any

from pipelines.judging.certainty.significance import assumed_variance, smallest_effect
from pipelines.judging.certainty.variance_components import CONFIDENCE, ContrastVariance
from pipelines.judging.claims import ClaimForm
from pipelines.judging.figures import RecordedFigure
from pipelines.recipe.claim import Claim
from pipelines.reports.elements.wording import metric_name

PAIR = 2.0
"""Sum of the squared weights of a difference of two sides."""
NORMAL = 1.96


@dataclass(frozen=True)
class ExpectedPower:
    """What a measurement would show."""

    smallest: float
    """The smallest effect beyond what the claim requires, in the figure's unit; of quotients, a factor."""
    required: float
    """What the effect must exceed."""
    records: int
    """Number of earlier records that say how far models are apart; 0: bounds."""
    ratio: bool
    published: float | None

    @property
    def suffices(self) -> bool | None:
        """Whether an effect as large as the published one would be shown; None where none is stated as a number."""
        if self.published is None:
            return None
        if self.ratio:
            return abs(math.log(self.published / self.required)) >= math.log(self.smallest)
        return abs(self.published - self.required) >= self.smallest


def expected_power(
    claim: Claim,
    figure: RecordedFigure,
    items: int | None,
    seeds: int,
    draws: int,
    records: Sequence[Mapping[str, Any]],
) -> ExpectedPower | None:
    """The power of a claim over so many `items` (None: as many as before), `seeds` and `draws`.

    None where nothing says how far the models are apart: for a figure that is no share and that no record has.
    """
    form = claim.form
    contrasts = form.contrasts()
    if form.of_spread or figure.exact:
        return None
    scale = sum(weight * weight for weight, _ in contrasts[0].terms) / PAIR
    known = [one for record in records for one in _variances(record, claim, figure, items)]
    if known:
        expected = _scaled(known, items, seeds, draws, scale)
    elif form.ratio or figure.bounds != (-1.0, 1.0) or items is None:
        return None
    else:
        expected = _times(assumed_variance(items, seeds, draws), scale)
    smallest = smallest_effect(expected, 1 - (1 - CONFIDENCE) / len(contrasts))
    required = max((one.at_least for one in contrasts), key=abs)
    if form.ratio:
        smallest, required = math.exp(smallest), math.exp(required)
    return ExpectedPower(smallest, required, len(known), form.ratio, claim.published_effect)


@dataclass(frozen=True)
class _Spread:
    """Variances of a difference of two sides, each times the number that it falls with."""

    items: float
    seeds: float
    draws: float


def _variances(record: Mapping[str, Any], claim: Claim, figure: RecordedFigure, items: int | None) -> Iterator[_Spread]:
    """The spreads of a record of the same figure on the same data, compared in the same way."""
    if record["metric"] != figure.name or record["data"].get("dataset") not in claim.datasets:
        return
    if bool(record.get("ratio", False)) != claim.form.ratio:
        return
    before = record["data"]["examples"]["test"] if items is not None else 1
    contrasts = [record["effect"]] if "effect" in record else record["contrasts"]
    for one in contrasts:
        number = record["seeds"]
        if (kept := one.get("variance")) is not None:
            draws = record.get("pretraining_draws", 1)
            yield _Spread(kept["items"] * before, kept["seeds"] * number, kept["draws"] * draws)
        elif "effect" in record and number > 1:
            # records of before: the seeds of both sides, and what they leave of the interval
            sides = (record["system"], record["baseline"])
            of_seeds = sum(variance(side[record["metric"]]["per_seed"]) / number for side in sides)
            yield _Spread(max(0.0, _squared(one, ratio=False) - of_seeds) * before, of_seeds * number, 0.0)
        elif "effect" not in record and number == 1 and not record["exact"]:
            yield _Spread(_squared(one, ratio=claim.form.ratio) * before, 0.0, 0.0)


def _squared(effect: Mapping[str, Any], *, ratio: bool) -> float:
    """Variance of an effect, from the width of its interval."""
    low, high = (math.log(effect[end]) if ratio else float(effect[end]) for end in ("low", "high"))
    return ((high - low) / 2 / NORMAL) ** 2


def _scaled(known: Sequence[_Spread], items: int | None, seeds: int, draws: int, scale: float) -> ContrastVariance:
    """The median spreads, at these numbers; between draws as between seeds where no record has several."""
    of_items = median(one.items for one in known) / (items or 1)
    of_seeds = median(one.seeds for one in known)
    of_draws = median(several) if (several := [one.draws for one in known if one.draws > 0]) else of_seeds
    return _times(
        ContrastVariance(
            of_items,
            max(1, (items or 100) - 1),
            of_seeds / seeds if seeds > 1 else 0.0,
            max(1, 2 * seeds - 2),
            of_draws / draws if draws > 1 else 0.0,
            max(1, 2 * draws - 2),
        ),
        scale,
    )


def _times(one: ContrastVariance, factor: float) -> ContrastVariance:
    return ContrastVariance(
        one.items * factor,
        one.item_freedom,
        one.seeds * factor,
        one.seed_freedom,
        one.draws * factor,
        one.draw_freedom,
    )


def size_of_effect(value: float, *, ratio: bool, share: bool) -> str:
    """An effect in the unit of its figure: `1.05 times` of a quotient, `2.6 points` of a share, else `3.1`."""
    return f"{value:.3g} times" if ratio else f"{100 * value:.1f} points" if share else f"{value:.3g}"


def power_text(power: ExpectedPower | None, form: ClaimForm, figure: RecordedFigure, published: str) -> list[str]:
    """Lines for the terminal: the smallest effect, where that is from, and whether the published one is larger."""
    name = metric_name(figure.name)
    if form.of_spread or figure.exact:
        return []
    if power is None:
        return [f"power     not known: no earlier record of {name} on these data says how far models are apart"]
    shown = partial(size_of_effect, ratio=power.ratio, share=figure.bounds == (-1.0, 1.0))
    source = f"spreads of {power.records} earlier effects on these data" if power.records else "binomial bounds"
    beyond = "" if power.required == (1.0 if power.ratio else 0.0) else f" beyond the required {shown(power.required)}"
    lines = [f"power     an effect of {shown(power.smallest)} of {name}{beyond} is shown four times in five ({source})"]
    if power.published is None:
        return [*lines, f"published {published}"]
    verdict = (
        "would be shown" if power.suffices else "is smaller: more seeds or examples, or a sharper form of the claim"
    )
    return [*lines, f"published {shown(power.published)} {verdict} ({published})"]
