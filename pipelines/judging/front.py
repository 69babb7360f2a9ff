"""Forms in which models can be served, by what they cost and how well they answer: which are worth it, and which to
serve.

    forms ─▶ not_dominated       no other is as good in bytes, milliseconds and score, and better in one
          ─▶ choose(limits)      the best score within limits, or the one that misses them by least
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pipelines.judging.limits import Limits

POINTS_OF_A_DOUBLING = 0.05
"""Share of the score whose loss counts as much as twice the bytes or milliseconds, where limits are missed."""


@dataclass(frozen=True)
class ServedForm:
    """A model in one runtime, and what was measured of it."""

    stage: str
    runtime: str
    bytes: int
    """Size of the files that serving needs."""
    milliseconds: float
    """Median time of an answer to one example."""
    milliseconds_of_a_batch: float
    score: float
    low: float
    high: float
    """95 % interval of the score."""
    difference: float
    """Score minus that of the teacher, on the same examples."""
    difference_low: float
    difference_high: float
    operations: int | None = None
    """Multiplications and additions of an answer, which the runtime does not change."""

    @classmethod
    def read(cls, record: Mapping[str, Any]) -> Self:
        """A form, as the evaluation records it."""
        latency, score, difference = record["latency_ms"], record["score"], record["difference"]
        one, batch = sorted(latency, key=int)
        return cls(
            record["stage"],
            record["runtime"],
            record["bytes"],
            latency[one]["median"],
            latency[batch]["median"],
            score["mean"],
            score["low"],
            score["high"],
            difference["difference"],
            difference["low"],
            difference["high"],
            record["operations"],
        )

    @property
    def title(self) -> str:
        """`half · openvino_int8`."""
        return f"{self.stage} · {self.runtime}"

    def beats(self, other: ServedForm) -> bool:
        """Whether it is nowhere worse than `other`, and somewhere better."""
        own, others = self._costs(), other._costs()
        return own != others and all(one <= two for one, two in zip(own, others, strict=True))

    def _costs(self) -> tuple[float, float, float]:
        return self.bytes, self.milliseconds, -self.score


@dataclass(frozen=True)
class Choice:
    """The form to serve."""

    form: ServedForm
    missed: tuple[str, ...]
    """The limits that it misses: `size`, `time`, `score`; empty where it is within all."""

    @property
    def within(self) -> bool:
        return not self.missed


def not_dominated(forms: Sequence[ServedForm]) -> list[ServedForm]:
    """The forms that no other beats (the Pareto front), the smallest first."""
    return sorted((one for one in forms if not any(other.beats(one) for other in forms)), key=lambda one: one.bytes)


def front(forms: Sequence[ServedForm], cost: Callable[[ServedForm], float]) -> list[ServedForm]:
    """The forms with which the score rises with one `cost`, cheapest first: each is better than all cheaper ones."""
    rising: list[ServedForm] = []
    for one in sorted(forms, key=lambda form: (cost(form), -form.score)):
        if not rising or one.score > rising[-1].score:
            rising.append(one)
    return rising


def choose(forms: Sequence[ServedForm], limits: Limits) -> Choice:
    """The form of the best score within `limits`, the smaller and then the faster of equals; where none is within, the
    one that misses them by least.

    A miss counts by its logarithm to base 2 of bytes and of milliseconds, and of the score in units of
    `POINTS_OF_A_DOUBLING`; misses add up.
    """
    within = [one for one in forms if not _misses(one, limits)]
    if within:
        return Choice(min(within, key=lambda one: (-one.score, one.bytes, one.milliseconds)), ())
    nearest = min(forms, key=lambda one: (sum(_misses(one, limits).values()), -one.score, one.bytes))
    return Choice(nearest, tuple(_misses(nearest, limits)))


def _misses(form: ServedForm, limits: Limits) -> dict[str, float]:
    """Limit that a form misses → by how much."""
    missed = {}
    if limits.bytes is not None and form.bytes > limits.bytes:
        missed["size"] = math.log2(form.bytes / limits.bytes)
    if limits.milliseconds is not None and form.milliseconds > limits.milliseconds:
        missed["time"] = math.log2(form.milliseconds / limits.milliseconds)
    if limits.loss is not None and -form.difference > limits.loss + 1e-9:
        missed["score"] = (-form.difference - limits.loss) / POINTS_OF_A_DOUBLING
    return missed
