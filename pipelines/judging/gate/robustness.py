"""Robustness: what an attack on the text may cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from pipelines.components import did_you_mean
from pipelines.judging.gate import Criterion, CriterionOutcome, decisive
from pipelines.judging.gate.evidence import CANDIDATE, Evidence


class RobustnessCriterion(Criterion, name="robustness"):
    """Under the worst of the measured attacks the candidate keeps a floor, or loses no more than it may.

    Met when the whole 95 % interval does, missed when the whole interval does not.
    """

    paper = "Belinkov and Bisk 2018, arXiv:1711.02173"

    floor: float | None = None
    """Least score on attacked text; None for no floor."""
    largest_loss: float | None = Field(0.2, ge=0)
    """Points of the metric that an attack may cost; None for no such limit."""
    metric: str | None = None
    """A metric of the task family; None for its first."""
    attacks: tuple[str, ...] = Field(("swapped_letters", "letter_case", "punctuation"), min_length=1)
    """What is done to the test examples, each by itself."""
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
            return self.undecided("the candidate was not attacked: no attack is defined for this task, or none was run")
        metric = self.metric or section["metrics"][0]
        if metric not in section["metrics"]:
            known = ", ".join(section["metrics"])
            return self.undecided(f"{metric} was not measured under attack; measured were {known}")
        found: list[CriterionOutcome] = []
        if self.floor is not None:
            attack, score = _worst(own["attacked"], metric, "mean")
            said = (
                f"under {attack}, the worst of {len(own['attacked'])} attacks, {metric} is {score['mean']:.3f} "
                f"[{score['low']:.3f}, {score['high']:.3f}], asked for at least {self.floor:.3f}"
            )
            found.append(self.bounded(said, score["mean"], score["low"], score["high"], self.floor, attack=attack))
        if self.largest_loss is not None:
            attack, loss = _worst(own["loss"], metric, "difference")
            said = (
                f"{attack}, the worst of {len(own['loss'])} attacks, changes {metric} by {loss['difference']:+.3f} "
                f"[{loss['low']:+.3f}, {loss['high']:+.3f}], allowed is a loss of {self.largest_loss:.3f}"
            )
            found.append(
                self.bounded(said, loss["difference"], loss["low"], loss["high"], -self.largest_loss, attack=attack)
            )
        if not found:
            return self.not_asked("neither robustness.floor nor robustness.largest_loss is set")
        return decisive(found)


def _worst(by_attack: Mapping[str, Mapping[str, Any]], metric: str, key: str) -> tuple[str, Mapping[str, Any]]:
    attack = min(by_attack, key=lambda name: float(by_attack[name][metric][key]))
    return attack, by_attack[attack][metric]
