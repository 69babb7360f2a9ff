"""Quality: the candidate scores at least as well as the champion on the same test examples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from pipelines.components import did_you_mean
from pipelines.judging.gate import Criterion, CriterionOutcome, decisive
from pipelines.judging.gate.evidence import CANDIDATE, CHAMPION, Evidence


class QualityCriterion(Criterion, name="quality"):
    """The paired 95 % interval of candidate minus champion lies above minus the margin (non-inferiority), or above
    zero.

    Missed when the whole interval lies below that threshold, undecided when the interval contains it. A first candidate
    is compared with the baselines of its task in the same way, if there are any.
    """

    paper = "Piaggio et al. 2012, doi:10.1001/jama.2012.87802"

    asks: Literal["not worse", "better"] = "not worse"
    """Requirement relative to the champion: `not worse` (by more than `margin`) or `better`."""
    margin: float = Field(0.01, ge=0, le=1)
    """Loss of the metric that is tolerated; 0.01 is one percentage point."""
    metric: str | None = None
    """A metric of the task family; None for its first."""
    at_least: float | None = None
    """Lower bound on the candidate's own score, for the whole interval; None for no bound."""

    baselines: bool = True
    """Whether a first candidate, which has no champion to compare with, is compared with the baselines of its task."""

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
            return self.undecided("the candidate was not scored on the test examples")
        metric = self.metric or evidence.metrics[0]
        own = next(stage for stage in scores["stages"] if stage["stage"] == CANDIDATE)[metric]
        threshold = 0.0 if self.asks == "better" else -self.margin
        outcomes: list[CriterionOutcome] = []
        if self.at_least is not None:
            outcomes.append(self._floor(metric, own, self.at_least))
        if evidence.champion:
            outcomes.append(
                self._compared(metric, scores["ladder"][0][metric], "the champion's", threshold, evidence.examples)
            )
        elif self.baselines:
            baselines = evidence.section("baselines") or {}
            key = f"{metric}_of_{CANDIDATE}_minus_this"
            outcomes += [
                self._compared(
                    metric, one[key], f"the baseline {one['name'].replace('_', ' ')}'s", threshold, evidence.examples
                )
                for one in baselines.get("baselines", ())
                if key in one
            ]
        if not outcomes:
            return self.not_required(
                f"there is no champion yet and no baseline to compare {metric} {own['mean']:.3f} "
                f"[{own['low']:.3f}, {own['high']:.3f}] with; a floor is set by quality.at_least"
            )
        return decisive(outcomes)

    def _floor(self, metric: str, own: Mapping[str, Any], floor: float) -> CriterionOutcome:
        statement = f"{metric} {own['mean']:.3f} [{own['low']:.3f}, {own['high']:.3f}], required: at least {floor:.3f}"
        return self.bounded(statement, own["mean"], own["low"], own["high"], floor, metric=metric)

    def _compared(
        self, metric: str, difference: Mapping[str, Any], whose: str, threshold: float, examples: int
    ) -> CriterionOutcome:
        better = self.asks == "better"
        statement = (
            f"{metric} minus {whose} is {difference['difference']:+.3f} "
            f"[{difference['low']:+.3f}, {difference['high']:+.3f}], required: "
            f"{self.asks if better else f'not worse by more than {self.margin:.3f}'}; the 95 % interval is over "
            f"{examples} test examples only, for these two served models, not over seeds"
        )
        return self.bounded(
            statement,
            difference["difference"],
            difference["low"],
            difference["high"],
            threshold,
            strictly=better,
            metric=metric,
        )
