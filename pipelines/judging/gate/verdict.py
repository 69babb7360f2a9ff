"""The verdict of the gate, from the outcomes of its criteria."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias

from pipelines.judging.gate import CriterionOutcome

Verdict: TypeAlias = Literal["GO", "NO-GO", "INCONCLUSIVE"]


def verdict(outcomes: Iterable[CriterionOutcome]) -> Verdict:
    """NO-GO if a criterion is missed; else INCONCLUSIVE if one is undecided or none was met; else GO."""
    kinds = {outcome.outcome for outcome in outcomes}
    if "missed" in kinds:
        return "NO-GO"
    if "undecided" in kinds or "met" not in kinds:
        return "INCONCLUSIVE"
    return "GO"


def sentence(decision: Verdict, outcomes: Iterable[CriterionOutcome]) -> str:
    """The verdict with the criteria that decide it: the missed ones, else the undecided, else those met."""
    decisive = {"NO-GO": "missed", "INCONCLUSIVE": "undecided", "GO": "met"}[decision]
    reasons = [outcome for outcome in outcomes if outcome.outcome == decisive]
    if not reasons:
        return f"{decision}: no criterion is configured; name some under promotion.criteria in params.yaml"
    return f"{decision}: " + "; ".join(f"{one.title} {decisive}: {one.reason.rstrip('.')}" for one in reasons)
