"""Figures: what judges record of a model as a number that a claim can compare.

    judge ── observes a model ──▶ sample [N, …]: one row per item ── RecordedFigure.score ──▶ the figure, of any items

An evaluation or a probe declares its figures (`Evaluation.figures`, `Probe.figures`) and hands in the sample of each
model (`EvaluationContext.keep`). Several figures may be scores of one sample: every metric of a task family, perplexity
and bits per byte. Samples are kept next to the record of a judging stage, so that a claim computes its interval from
them, over seeds and items, without running a model again.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score

UNBOUNDED = (float("-inf"), float("inf"))


@dataclass(frozen=True)
class RecordedFigure:
    """One number about a model, as a function of a sample that its judge kept."""

    name: str
    sample: str
    """Name of the sample, without `/`."""
    score: Score = field(compare=False)
    """Rows [n, …] of any items → the figure over them."""
    lower: bool = False
    """Whether less is better."""
    unit: str = ""
    """What it counts; empty for a share or a score."""
    exact: bool = False
    """Whether it follows from the stage alone, so that neither seeds nor items vary it: it needs no interval."""
    bounds: tuple[float, float] = UNBOUNDED
    """The smallest and largest possible value."""


def row_mean(rows: NDArray[np.float64]) -> float:
    """Mean of `rows` [n, 1]: the figure itself where a model has one row."""
    return float(rows[:, 0].mean())


def quotient(of: int, transform: Callable[[float], float] = float) -> Score:
    """Score of rows [n, K]: the sum of column 0 divided by that of column `of`, passed through `transform`."""
    return lambda rows: transform(float(rows[:, 0].sum() / max(float(rows[:, of].sum()), 1.0)))


def middle_mean(rows: NDArray[np.float64]) -> float:
    """Mean of the middle half of `rows` [n, 1]: as robust to other load on the machine as a median, and smooth enough
    for a jackknife."""
    import numpy as np

    values = np.sort(rows[:, 0])
    cut = len(values) // 4
    return float(values[cut : len(values) - cut].mean())


def best_layer_score(score: Score) -> Score:
    """Score of rows [n, L, K]: the highest `score` of a layer's rows [n, K]."""
    return lambda rows: max(score(rows[:, layer]) for layer in range(rows.shape[1]))


def expected_layer(score: Score) -> Score:
    """Score of rows [n, L, K]: the layer at which the best score so far is expected to be gained.

    Tenney et al. 2019 (arXiv:1905.05950, §3.3, eq. 3 and 4): the mean of the layers weighted by what each adds to the
    score of those below it, here to the best of theirs, as every layer is probed alone. 0 if no layer adds anything.
    """

    def expected(rows: NDArray[np.float64]) -> float:
        scores = [score(rows[:, layer]) for layer in range(rows.shape[1])]
        best = [max(scores[: layer + 1]) for layer in range(len(scores))]
        gains = [after - before for before, after in pairwise(best)]
        total = sum(gains)
        return sum(layer * gain for layer, gain in enumerate(gains, start=1)) / total if total > 0 else 0.0

    return expected


def likelihood_figures(perplexity: str, bits_per_byte: str) -> tuple[RecordedFigure, RecordedFigure]:
    """Figures of a sample called `perplexity` whose rows are texts [N, 3]: negative log-likelihood in nats, tokens,
    bytes."""
    return (
        RecordedFigure(perplexity, perplexity, quotient(1, math.exp), lower=True, bounds=(1.0, math.inf)),
        RecordedFigure(bits_per_byte, perplexity, quotient(2, _bits), lower=True, unit="bits", bounds=(0.0, math.inf)),
    )


def _bits(nats: float) -> float:
    return nats / math.log(2)


STEP_FIGURES = (
    RecordedFigure("training_seconds", "training_seconds", row_mean, lower=True, unit="s", bounds=(0.0, math.inf)),
    RecordedFigure("training_tokens", "training_tokens", row_mean, lower=True, unit="tokens", bounds=(0.0, math.inf)),
)
"""Figures of the records of trained stages, without a judge; a sample has one row for each seed."""
