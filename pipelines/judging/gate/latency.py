"""Latency: an upper bound on the time of a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from pipelines.judging.gate import Criterion, CriterionOutcome, decisive
from pipelines.judging.gate.evidence import CANDIDATE, Evidence


class LatencyCriterion(Criterion, name="latency"):
    """The median latency of a call stays within a budget: in milliseconds, or as a multiple of the champion's.

    Both models are timed alternately on the same machine and the same examples. A budget is met when the whole 95 %
    interval of the median, or of the ratio of medians, lies within it, and missed when the whole interval exceeds it.
    """

    at_most_ms: float | None = Field(None, gt=0)
    """Milliseconds of one call on one thread; None for no such budget."""
    times_champion: float | None = Field(1.25, gt=0)
    """Multiple of the champion's median latency; None for no such budget."""
    examples: Literal[1, 32] = 1
    """Examples in the timed call."""

    def evaluations(self, champion: bool) -> tuple[dict[str, Any], ...]:
        return ({"name": "serving"},)

    def judge(self, evidence: Evidence) -> CriterionOutcome:
        section = evidence.section("served")
        if section is None:
            return self.undecided("latency was not measured")
        call, batch = str(self.examples), "1 example" if self.examples == 1 else f"{self.examples} examples"
        outcomes: list[CriterionOutcome] = []
        if self.at_most_ms is not None:
            own = next(one for one in section["served"] if one["stage"] == CANDIDATE)["latency_ms"][call]
            statement = (
                f"a call with {batch} takes {own['median']:.2f} ms [{own['low']:.2f}, {own['high']:.2f}], "
                f"required: at most {self.at_most_ms:g} ms"
            )
            outcomes.append(self._within(statement, own, own["median"], self.at_most_ms))
        if self.times_champion is not None and evidence.champion:
            times = section["times"][call]
            statement = (
                f"a call with {batch} takes {times['quotient']:.2f} [{times['low']:.2f}, {times['high']:.2f}] times as "
                f"long as the champion's, required: at most {self.times_champion:g}"
            )
            outcomes.append(self._within(statement, times, times["quotient"], self.times_champion))
        if not outcomes:
            return self.not_required("there is no champion to compare with yet, and latency.at_most_ms is not set")
        return decisive(outcomes)

    def _within(self, statement: str, measured: Mapping[str, Any], value: float, budget: float) -> CriterionOutcome:
        return self.bounded(statement, value, measured["low"], measured["high"], budget, above=False)
