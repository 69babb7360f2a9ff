"""Quality: does the candidate answer the same test examples as well as the champion?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from pipelines.components import did_you_mean
from pipelines.judging.gate import Criterion, CriterionOutcome, decisive
from pipelines.judging.gate.evidence import CANDIDATE, CHAMPION, Evidence


class QualityCriterion(Criterion, name="quality"):
    """The paired 95 % interval of candidate minus champion lies above minus the margin (non-inferiority), or above zero.

    It is missed when the whole interval lies below, and undecided when the interval holds the border. A first candidate is
    compared with the baselines of its task, where there are any, in the same way.
    """

    paper = "Piaggio et al. 2012, doi:10.1001/jama.2012.87802"

    asks: Literal["not worse", "better"] = "not worse"
    """Than the champion: not worse by more than `margin`, or better."""
    margin: float = Field(0.01, ge=0, le=1)
    """Points of the metric that may be lost; 0.01 is one point of a hundred."""
    metric: str | None = None
    """A metric of the task family; None for its first."""
    at_least: float | None = None
    """A floor under the candidate's own score, whole interval; None for no floor."""

    baselines: bool = True
    """Whether a first candidate, which has no champion to be compared with, is compared with the baselines of its task."""

    def problem(self, metrics: tuple[str, ...]) -> str | None:
        if self.metric is None or self.metric in metrics:
            return None
        return f"the task has no metric {self.metric!r}.{did_you_mean(self.metric, metrics)}"

    def evaluations(self, champion: bool) -> tuple[dict[str, Any], ...]:
        if champion:
            return ({"name": "scores", "ladder": [CHAMPION, CANDIDATE], "metric": self.metric},)
        against = ({"name": "baselines", "against": CANDIDATE},) if self.baselines else ()
        return ({"name": "scores", "metric": self.metric}, *against)

    def judge(self, evidence: Evidence) -> CriterionOutcome:
        scores = evidence.section("stages", "metrics", "ladder")
        if scores is None:
            return self.undecided("the candidate's answers to the test examples were not scored")
        metric = self.metric or evidence.metrics[0]
        own = next(stage for stage in scores["stages"] if stage["stage"] == CANDIDATE)[metric]
        border = 0.0 if self.asks == "better" else -self.margin
        found: list[CriterionOutcome] = []
        if self.at_least is not None:
            found.append(self._floor(metric, own, self.at_least))
        if evidence.champion:
            found.append(
                self._compared(metric, scores["ladder"][0][metric], "the champion's", border, evidence.examples)
            )
        elif self.baselines:
            baselines = evidence.section("baselines") or {}
            key = f"{metric}_of_{CANDIDATE}_minus_this"
            found += [
                self._compared(metric, one[key], f"the baseline {one['name']}'s", border, evidence.examples)
                for one in baselines.get("baselines", ())
                if key in one
            ]
        if not found:
            return self.not_asked(
                f"there is no champion yet and no baseline to compare {metric} {own['mean']:.3f} "
                f"[{own['low']:.3f}, {own['high']:.3f}] with; a floor is set by quality.at_least"
            )
        return decisive(found)

    def _floor(self, metric: str, own: Mapping[str, Any], floor: float) -> CriterionOutcome:
        said = f"{metric} {own['mean']:.3f} [{own['low']:.3f}, {own['high']:.3f}], asked for at least {floor:.3f}"
        return self.bounded(said, own["mean"], own["low"], own["high"], floor, metric=metric)

    def _compared(
        self, metric: str, by: Mapping[str, Any], whose: str, border: float, examples: int
    ) -> CriterionOutcome:
        better = self.asks == "better"
        said = (
            f"{metric} minus {whose} is {by['difference']:+.3f} [{by['low']:+.3f}, {by['high']:+.3f}], asked for "
            f"{self.asks if better else f'not worse by more than {self.margin:.3f}'}; the 95 % interval is over {examples} test "
            "examples alone, for these two models as they are served"
        )
        return self.bounded(said, by["difference"], by["low"], by["high"], border, strictly=better, metric=metric)
