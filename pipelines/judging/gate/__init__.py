"""The promotion gate: criteria that decide whether a candidate may replace the champion.

    evaluation.json of the judging step ─┐
    leakage ledger of the dataset ───────┼─▶ Evidence ─▶ Criterion.judge ─▶ CriterionOutcome … ─▶ verdict
    records and digests of the lineage ──┘

A criterion is a component, one file each, configured in params.yaml under `promotion.criteria`. It names the
evaluations that measure its evidence, and finds their records by their keys. Criteria do no I/O: all evidence is
gathered beforehand.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from pipelines.components import Component
from pipelines.judging.gate.evidence import Evidence

OutcomeKind: TypeAlias = Literal["met", "missed", "undecided", "not asked"]
"""Outcome of a criterion; `not asked` is that of a criterion which is not configured or has nothing to compare with."""


class CriterionOutcome(BaseModel):
    """Outcome of one criterion, with its reason."""

    model_config = ConfigDict(frozen=True, ser_json_inf_nan="constants")

    criterion: str
    outcome: OutcomeKind
    reason: str
    """One sentence, with the figures."""
    evidence: dict[str, Any] = {}
    """The figures alone."""
    task: str | None = Field(None, exclude_if=lambda value: value is None)
    """The task that it is about, of models that answer several; None for one that is about all of them alike."""

    @property
    def title(self) -> str:
        """The criterion, and the task where it is about one of several."""
        return self.criterion if self.task is None else f"{self.criterion} on {self.task}"


class Criterion(Component):
    """One condition of a promotion."""

    def problem(self, metrics: tuple[str, ...]) -> str | None:
        """What the settings require that a task family with these metrics cannot provide; None if the criterion can be
        judged."""
        return None

    def evaluations(self, champion: bool) -> tuple[dict[str, Any], ...]:
        """The evaluations that measure the evidence, as entries of a recipe's `suite`; with or without a champion."""
        return ()

    @abstractmethod
    def judge(self, evidence: Evidence) -> CriterionOutcome:
        """Judge the evidence. Missing or ambiguous evidence gives `undecided`, with the reason."""

    def met(self, reason: str, **numbers: Any) -> CriterionOutcome:
        return CriterionOutcome(criterion=self.name, outcome="met", reason=reason, evidence=numbers)

    def missed(self, reason: str, **numbers: Any) -> CriterionOutcome:
        return CriterionOutcome(criterion=self.name, outcome="missed", reason=reason, evidence=numbers)

    def undecided(self, reason: str, **numbers: Any) -> CriterionOutcome:
        return CriterionOutcome(criterion=self.name, outcome="undecided", reason=reason, evidence=numbers)

    def not_required(self, reason: str) -> CriterionOutcome:
        return CriterionOutcome(criterion=self.name, outcome="not asked", reason=reason)

    def bounded(
        self,
        statement: str,
        value: float,
        low: float,
        high: float,
        threshold: float,
        *,
        above: bool = True,
        strictly: bool = False,
        **more: Any,
    ) -> CriterionOutcome:
        """Compare a confidence interval with a threshold that the value must stay `above`, or else below.

        Met if the whole interval is on the required side, missed if none of it is, otherwise undecided. With
        `strictly`, a value equal to the threshold does not satisfy it.
        """
        numbers = {"value": value, "low": low, "high": high, "border": threshold, "above": above, **more}
        worst, best = (low, high) if above else (-high, -low)
        limit = threshold if above else -threshold
        if worst > limit or (worst == limit and not strictly):
            return self.met(statement, **numbers)
        if best < limit or (best == limit and strictly):
            return self.missed(statement, **numbers)
        return self.undecided(statement, **numbers)


def decisive(outcomes: Sequence[CriterionOutcome]) -> CriterionOutcome:
    """The outcome that decides among several of one criterion: the first missed, else the first undecided, else the
    last."""
    worst = (one for kind in ("missed", "undecided") for one in outcomes if one.outcome == kind)
    return next(worst, outcomes[-1])


def judge_tasks(criterion: Criterion, evidence: Mapping[str, Evidence]) -> list[CriterionOutcome]:
    """The outcomes of a criterion on each task of `evidence`; a single one if it is the same on all of them.

    The verdict is over all of them, so a candidate has to meet every criterion on every task.
    """
    outcomes = {task: criterion.judge(one) for task, one in evidence.items()}
    first, *others = outcomes.values()
    if all(other == first for other in others):
        return [first]
    return [outcome.model_copy(update={"task": task}) for task, outcome in outcomes.items()]
