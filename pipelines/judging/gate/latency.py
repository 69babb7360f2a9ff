"""Latency: what an answer may take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from pipelines.judging.gate import Criterion, CriterionOutcome, decisive
from pipelines.judging.gate.evidence import CANDIDATE, Evidence


class LatencyCriterion(Criterion, name="latency"):
    """The median time of a call lies within a budget: in milliseconds, or as a multiple of the champion's.

    Both models take turns on the same machine and the same examples. A budget is met when the whole 95 % interval of the
    median, or of the quotient of medians, lies within it, and missed when the whole interval lies beyond.
    """

    at_most_ms: float | None = Field(None, gt=0)
    """Milliseconds of one call on one thread; None for no such budget."""
    times_champion: float | None = Field(1.25, gt=0)
    """Multiple of the champion's median; None for no such budget."""
    examples: Literal[1, 32] = 1
    """Examples in the call that is looked at."""

    def evaluations(self, champion: bool) -> tuple[dict[str, Any], ...]:
        return ({"name": "serving"},)

    def judge(self, evidence: Evidence) -> CriterionOutcome:
        section = evidence.section("served")
        if section is None:
            return self.undecided("the time of an answer was not measured")
        call, called = str(self.examples), "1 example" if self.examples == 1 else f"{self.examples} examples"
        found: list[CriterionOutcome] = []
        if self.at_most_ms is not None:
            own = next(one for one in section["served"] if one["stage"] == CANDIDATE)["latency_ms"][call]
            said = (
                f"a call with {called} takes {own['median']:.2f} ms [{own['low']:.2f}, {own['high']:.2f}], "
                f"asked for at most {self.at_most_ms:g} ms"
            )
            found.append(self._within(said, own, own["median"], self.at_most_ms))
        if self.times_champion is not None and evidence.champion:
            times = section["times"][call]
            said = (
                f"a call with {called} takes {times['quotient']:.2f} [{times['low']:.2f}, {times['high']:.2f}] times the "
                f"champion's, asked for at most {self.times_champion:g}"
            )
            found.append(self._within(said, times, times["quotient"], self.times_champion))
        if not found:
            return self.not_asked("there is no champion yet to be measured by, and latency.at_most_ms is not set")
        return decisive(found)

    def _within(self, said: str, measured: Mapping[str, Any], value: float, budget: float) -> CriterionOutcome:
        return self.bounded(said, value, measured["low"], measured["high"], budget, above=False)
