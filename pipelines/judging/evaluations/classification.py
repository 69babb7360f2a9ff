"""Scores of every judged stage with intervals, and which step of a ladder of stages pays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pipelines.judging.certainty.significance import PAYS
from pipelines.judging.certainty.statistics import METRICS, RESAMPLES, Difference, interval, paired_difference
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.ladder import compare_ladder

if TYPE_CHECKING:
    from pipelines.judging.evaluations.context import EvaluationContext


class ClassificationEvaluation(Evaluation, name="classification"):
    """Accuracy and macro-F1 on the test table: mean over seeds, each seed, 95 % interval over seeds and texts.

    Consecutive stages of the ladder are compared on the same texts, and the last with the first. A step pays if its
    difference is above zero after Holm's correction over all steps, does not pay if below, and is undecided otherwise
    (`cannot tell`).
    """

    paper = "doi:10.1214/07-AOAS122"
    reads = frozenset({"text_classification"})

    ladder: tuple[str, ...] = ()
    """Stages, each with one step more than the one before; empty for no comparison."""
    metric: Literal["accuracy", "macro_f1"] = "accuracy"
    """Metric of the verdicts."""

    @property
    def subjects(self) -> tuple[str, ...]:
        return self.ladder

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        truth, classes = context.truth, len(context.labels)
        stages = []
        headline = {}
        for stage, models in context.task_models.items():
            predicted = context.stage_predictions(stage)
            record: dict[str, Any] = {"stage": stage, "seeds": [subject.seed for subject in models]}
            for metric in METRICS:
                estimate = interval(metric, truth, predicted, classes, context.seed)
                record[metric] = estimate.record()
                headline[f"test/{metric}/{stage}"] = estimate.mean
                if context.clean is not None:
                    clean_rows = context.clean
                    clean = interval(metric, truth[clean_rows], predicted[:, clean_rows], classes, context.seed)
                    record.setdefault("clean", {})[metric] = clean.record()
                    headline[f"test_clean/{metric}/{stage}"] = clean.mean
            stages.append(record)
        return {
            "metrics": list(METRICS),
            "examples": int(truth.size),
            "clean_examples": int(truth.size if context.clean is None else context.clean.sum()),
            "resamples": RESAMPLES,
            "verdict_metric": self.metric,
            "stages": stages,
            **self._compare_ladder(context),
            "headline": headline,
        }

    def _compare_ladder(self, context: EvaluationContext) -> dict[str, Any]:
        def compare(before: str, after: str) -> dict[str, Difference]:
            first, second = context.stage_predictions(before), context.stage_predictions(after)
            return {
                metric: paired_difference(metric, context.truth, first, second, len(context.labels), context.seed)
                for metric in METRICS
            }

        comparisons = compare_ladder(self.ladder, self.metric, compare, context)
        for step in (*comparisons["ladder"], *([comparisons["whole_ladder"]] if comparisons["whole_ladder"] else [])):
            step["verdict"] = PAYS[step["verdict"]]
        return comparisons
