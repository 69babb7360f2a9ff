"""Whether what a claim compares has learnt anything: its sides against the best answer that reads no text.

Two models near chance differ by luck, or by which of them gave up later. A verdict on them says nothing about the
systems, whichever way it falls.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from pipelines.judging.certainty.contrasts import WeightedSide, contrast_interval
from pipelines.judging.certainty.variance_components import CONFIDENCE
from pipelines.judging.claims import ClaimForm, ComparedSide
from pipelines.judging.claims.judgement import MeasuredSide
from pipelines.judging.figures import RecordedFigure
from pipelines.judging.samples import CONSTANT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def near_chance(
    form: ClaimForm,
    figure: RecordedFigure,
    measured: Callable[[ComparedSide], MeasuredSide],
    baselines: Callable[[ComparedSide], Mapping[str, NDArray[np.float64]]],
    seed: int,
) -> bool:
    """Whether, on some of the data that a claim judges, no side is surely above the better constant answer.

    `baselines` are the rows [N, …] of each baseline on the items of a side, by the names of `samples`; of those only
    constant answers count, and without any nothing is near chance. Surely above: by more than the claim's own margin,
    with a confidence of 95 % over all sides together.
    """
    groups: dict[str, list[ComparedSide]] = {}
    for side in form.sides():
        groups.setdefault(measured(side).items, []).append(side)
    margin = margin_of(form)
    for sides in groups.values():
        score = measured(sides[0]).score
        constant = [rows for name, rows in baselines(sides[0]).items() if name.startswith(CONSTANT)]
        if not constant:
            continue
        chance = max(constant, key=score)
        confidence = 1 - (1 - CONFIDENCE) / len(sides)
        lows = [_low(measured(side), figure, chance, seed, confidence) for side in sides]
        if max(lows) <= margin:
            return True
    return False


def margin_of(form: ClaimForm) -> float:
    """The largest difference of figures that a claim calls small, or asks for; zero where it compares quotients."""
    if form.ratio or form.of_spread:
        return 0.0
    return max(abs(one.at_least) for one in form.contrasts())


def _low(
    side: MeasuredSide, figure: RecordedFigure, chance: NDArray[np.float64], seed: int, confidence: float
) -> float:
    """Lower end of the interval of a side's figure minus that of a constant answer, on the same items."""
    other = WeightedSide(-1.0, side.score, [chance], side.items)
    return contrast_interval([other, side.weighted(1.0, side.score, figure)], seed, confidence).low
