"""From outcomes to a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from pipelines.judging.gate import CriterionOutcome

Verdict: TypeAlias = Literal["GO", "NO-GO", "INCONCLUSIVE"]


def verdict(outcomes: Iterable[CriterionOutcome]) -> Verdict:
    """NO-GO when a criterion is missed; else INCONCLUSIVE when one is undecided, or when none was asked at all; else GO."""
    found = {outcome.outcome for outcome in outcomes}
    if "missed" in found:
        return "NO-GO"
    if "undecided" in found or "met" not in found:
        return "INCONCLUSIVE"
    return "GO"


def sentence(found: Verdict, outcomes: Iterable[CriterionOutcome]) -> str:
    """The verdict with what it hangs on: the criteria that were missed, else those that are undecided, else those met."""
    decisive = {"NO-GO": "missed", "INCONCLUSIVE": "undecided", "GO": "met"}[found]
    reasons = [outcome for outcome in outcomes if outcome.outcome == decisive]
    if not reasons:
        return f"{found}: no criterion was asked; name some under promotion.criteria in params.yaml"
    return f"{found}: " + "; ".join(f"{one.criterion} {decisive}: {one.reason.rstrip('.')}" for one in reasons)
