"""The gate: may this model take the champion's place? Pure judgement over evidence that others have gathered.

    evaluation.json of the judging step ─┐
    leakage ledger of the dataset ───────┼─▶ Evidence ─▶ Criterion.judge ─▶ Outcome … ─▶ verdict: GO, NO-GO, INCONCLUSIVE
    records and digests of the lineage ──┘

A criterion is a component: one file each, asked for in params.yaml under `promotion.criteria`. It names the evaluations that
measure what it needs, and finds their records by what they hold.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from pipelines.components import Component
from pipelines.judging.gate.evidence import Evidence

OutcomeKind: TypeAlias = Literal["met", "missed", "undecided", "not asked"]


class CriterionOutcome(BaseModel):
    """What a criterion answers."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    criterion: str
    outcome: OutcomeKind
    reason: str
    """One sentence, with the numbers."""
    evidence: dict[str, Any] = {}
    """The numbers by themselves."""


class Criterion(Component):
    """One condition of a promotion."""

    def problem(self, metrics: tuple[str, ...]) -> str | None:
        """What it asks for that a task family with these metrics cannot give; None where it can be judged."""
        return None

    def evaluations(self, champion: bool) -> tuple[dict[str, Any], ...]:
        """The evaluations that measure its evidence, as a recipe's `suite` would name them; with or without a champion."""
        return ()

    @abstractmethod
    def judge(self, evidence: Evidence) -> CriterionOutcome:
        """Whether it is met. Evidence that is missing or leaves both open is `undecided`, with the reason."""

    def met(self, reason: str, **numbers: Any) -> CriterionOutcome:
        return CriterionOutcome(criterion=self.name, outcome="met", reason=reason, evidence=numbers)

    def missed(self, reason: str, **numbers: Any) -> CriterionOutcome:
        return CriterionOutcome(criterion=self.name, outcome="missed", reason=reason, evidence=numbers)

    def undecided(self, reason: str, **numbers: Any) -> CriterionOutcome:
        return CriterionOutcome(criterion=self.name, outcome="undecided", reason=reason, evidence=numbers)

    def not_asked(self, reason: str) -> CriterionOutcome:
        return CriterionOutcome(criterion=self.name, outcome="not asked", reason=reason)

    def bounded(
        self,
        said: str,
        value: float,
        low: float,
        high: float,
        border: float,
        *,
        above: bool = True,
        strictly: bool = False,
        **more: Any,
    ) -> CriterionOutcome:
        """What an interval says of a border that must be kept `above`, else below: met when the whole interval keeps it,
        missed when the whole interval does not. `strictly`: the border itself does not keep it."""
        numbers = {"value": value, "low": low, "high": high, "border": border, "above": above, **more}
        worst, best = (low, high) if above else (-high, -low)
        limit = border if above else -border
        if worst > limit or (worst == limit and not strictly):
            return self.met(said, **numbers)
        if best < limit or (best == limit and strictly):
            return self.missed(said, **numbers)
        return self.undecided(said, **numbers)


def decisive(found: Sequence[CriterionOutcome]) -> CriterionOutcome:
    """Of several answers to one question, that which closes the gate, else that which leaves it open, else the last."""
    worst = (one for wanted in ("missed", "undecided") for one in found if one.outcome == wanted)
    return next(worst, found[-1])
