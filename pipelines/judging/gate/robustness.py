"""Robustness: a bound on what attacks on the test examples may cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from pipelines.components import did_you_mean
from pipelines.judging.gate import Criterion, CriterionOutcome, decisive
from pipelines.judging.gate.evidence import CANDIDATE, Evidence


class RobustnessCriterion(Criterion, name="robustness"):
    """Under the worst measured attack, the candidate's score stays above a floor, or its loss below a limit.

    Met when the whole 95 % interval satisfies it, missed when none of it does.
    """

    paper = "Belinkov and Bisk 2018, arXiv:1711.02173"

    floor: float | None = None
    """Lowest score on attacked examples; None for no floor."""
    largest_loss: float | None = Field(0.2, ge=0)
    """Loss of the metric that an attack may cause; None for no limit."""
    metric: str | None = None
    """A metric of the task family; None for its first."""
    attacks: tuple[str, ...] = Field(("swapped_letters", "letter_case", "punctuation"), min_length=1)
    """Attacks on the test examples, applied one at a time."""
    rate: float = Field(0.2, gt=0, le=1)
    """Share of words that an attack changes."""

    def problem(self, metrics: tuple[str, ...]) -> str | None:
        if self.metric is None or self.metric in metrics:
            return None
        return f"the task has no metric {self.metric!r}.{did_you_mean(self.metric, metrics)}"

    def evaluations(self, champion: bool) -> tuple[dict[str, Any], ...]:
        return ({"name": "robustness", "attacks": list(self.attacks), "rate": self.rate, "metric": self.metric},)

    def judge(self, evidence: Evidence) -> CriterionOutcome:
        section = evidence.section("attacks", "stages")
        own = next((one for one in section["stages"] if one["stage"] == CANDIDATE), None) if section else None
        if section is None or own is None or not own["attacked"]:
            return self.undecided("robustness was not measured: no attack is defined for this task, or none was run")
        metric = self.metric or section["metrics"][0]
        if metric not in section["metrics"]:
            known = ", ".join(section["metrics"])
            return self.undecided(f"{metric} was not measured under attack; measured: {known}")
        outcomes: list[CriterionOutcome] = []
        if self.floor is not None:
            attack, score = _worst(own["attacked"], metric, "mean")
            statement = (
                f"under {attack}, the worst of {len(own['attacked'])} attacks, {metric} is {score['mean']:.3f} "
                f"[{score['low']:.3f}, {score['high']:.3f}], required: at least {self.floor:.3f}"
            )
            outcomes.append(
                self.bounded(statement, score["mean"], score["low"], score["high"], self.floor, attack=attack)
            )
        if self.largest_loss is not None:
            attack, loss = _worst(own["loss"], metric, "difference")
            statement = (
                f"{attack}, the worst of {len(own['loss'])} attacks, changes {metric} by {loss['difference']:+.3f} "
                f"[{loss['low']:+.3f}, {loss['high']:+.3f}], allowed: a loss of {self.largest_loss:.3f}"
            )
            outcomes.append(
                self.bounded(
                    statement, loss["difference"], loss["low"], loss["high"], -self.largest_loss, attack=attack
                )
            )
        if not outcomes:
            return self.not_required("neither robustness.floor nor robustness.largest_loss is set")
        return decisive(outcomes)


def _worst(by_attack: Mapping[str, Mapping[str, Any]], metric: str, key: str) -> tuple[str, Mapping[str, Any]]:
    attack = min(by_attack, key=lambda name: float(by_attack[name][metric][key]))
    return attack, by_attack[attack][metric]
