"""The gate: may this model take the champion's place? Pure judgement over evidence that others have gathered.

    evaluation.json of the judging step ─┐
    leakage ledger of the dataset ───────┼─▶ Evidence ─▶ Criterion.judge ─▶ Outcome … ─▶ verdict: GO, NO-GO, INCONCLUSIVE
    records and digests of the lineage ──┘

A criterion is a component: one file each, asked for in params.yaml under `promotion.criteria`. It names the evaluations that
measure what it needs, and finds their records by what they hold.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from pipelines.components import Component
from pipelines.gate.evidence import Evidence

Answer: TypeAlias = Literal["met", "missed", "undecided", "not asked"]


class Outcome(BaseModel):
    """What a criterion answers."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    criterion: str
    outcome: Answer
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
    def judge(self, evidence: Evidence) -> Outcome:
        """Whether it is met. Evidence that is missing or leaves both open is `undecided`, with the reason."""

    def met(self, reason: str, **numbers: Any) -> Outcome:
        return Outcome(criterion=self.name, outcome="met", reason=reason, evidence=numbers)

    def missed(self, reason: str, **numbers: Any) -> Outcome:
        return Outcome(criterion=self.name, outcome="missed", reason=reason, evidence=numbers)

    def undecided(self, reason: str, **numbers: Any) -> Outcome:
        return Outcome(criterion=self.name, outcome="undecided", reason=reason, evidence=numbers)

    def not_asked(self, reason: str) -> Outcome:
        return Outcome(criterion=self.name, outcome="not asked", reason=reason)
