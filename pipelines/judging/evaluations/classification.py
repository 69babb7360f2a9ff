"""Scores of every judged stage with intervals, and which step of a ladder of stages paid."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipelines.judging.certainty.significance import PAYS
from pipelines.judging.certainty.statistics import METRICS, RESAMPLES, Difference, interval, paired_difference
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.ladder import compare_ladder

if TYPE_CHECKING:
    from pipelines.judging.evaluations.stage import EvaluationContext


class ClassificationEvaluation(Evaluation, name="classification"):
    """Accuracy and macro-F1 on the test table: mean over seeds, each seed, 95 % interval over seeds and texts.

    Consecutive stages of the ladder are compared on the same texts, and the last with the first. A step pays when
    its difference is above zero after Holm's correction over all steps, does not pay when below, and otherwise one cannot tell.
    """

    paper = "doi:10.1214/07-AOAS122"
    reads = frozenset({"text_classification"})

    ladder: tuple[str, ...] = ()
    """Stages in an order in which each adds one thing to the one before; none means no comparison."""
    metric: Literal["accuracy", "macro_f1"] = "accuracy"
    """What the verdicts are about."""

    @property
    def subjects(self) -> tuple[str, ...]:
        return self.ladder

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        truth, classes = evaluated.truth, len(evaluated.labels)
        stages = []
        headline = {}
        for stage, models in evaluated.answering.items():
            predicted = evaluated.stage_predictions(stage)
            record: dict[str, Any] = {"stage": stage, "seeds": [subject.seed for subject in models]}
            for metric in METRICS:
                estimate = interval(metric, truth, predicted, classes, evaluated.seed)
                record[metric] = estimate.record()
                headline[f"test/{metric}/{stage}"] = estimate.mean
                if evaluated.clean is not None:
                    kept = evaluated.clean
                    clean = interval(metric, truth[kept], predicted[:, kept], classes, evaluated.seed)
                    record.setdefault("clean", {})[metric] = clean.record()
                    headline[f"test_clean/{metric}/{stage}"] = clean.mean
            stages.append(record)
        return {
            "metrics": list(METRICS),
            "examples": int(truth.size),
            "clean_examples": int(truth.size if evaluated.clean is None else evaluated.clean.sum()),
            "resamples": RESAMPLES,
            "verdict_metric": self.metric,
            "stages": stages,
            **self._climbed(evaluated),
            "headline": headline,
        }

    def _climbed(self, evaluated: EvaluationContext) -> dict[str, Any]:
        def compare(before: str, after: str) -> dict[str, Difference]:
            first, second = evaluated.stage_predictions(before), evaluated.stage_predictions(after)
            return {
                metric: paired_difference(metric, evaluated.truth, first, second, len(evaluated.labels), evaluated.seed)
                for metric in METRICS
            }

        found = compare_ladder(self.ladder, self.metric, compare, evaluated)
        for step in (*found["ladder"], *([found["whole_ladder"]] if found["whole_ladder"] else [])):
            step["verdict"] = PAYS[step["verdict"]]
        return found
