"""Scores of every judged stage on any task family, and which step of a ladder of stages pays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pipelines.judging.certainty.resampling import RESAMPLES, interval, paired_difference
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.ladder import compare_ladder
from pipelines.judging.figures import RecordedFigure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.statistics import Difference
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import TaskFamily


class ScoresEvaluation(Evaluation, name="scores"):
    """The family's metrics on the test table: mean over seeds, each seed, 95 % interval over seeds and examples.

    Consecutive stages of the ladder are compared on the same examples, and the last with the first: better if the
    difference is above zero after Holm's correction over all steps, worse if below, otherwise undecided (`cannot
    tell`).
    """

    paper = "doi:10.1214/07-AOAS122"

    ladder: tuple[str, ...] = ()
    """Stages, each with one step more than the one before; empty for no comparison."""
    metric: str | None = None
    """Metric of the verdicts; None for the family's first."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [RecordedFigure(one, "answers", family.scorer(one), bounds=(-1.0, 1.0)) for one in family.metrics]

    @classmethod
    def options_to_compare(cls, stages: Sequence[str], figure: str | None) -> dict[str, Any]:
        return {"ladder": list(stages), "metric": figure}

    @property
    def subjects(self) -> tuple[str, ...]:
        return self.ladder

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        family = context.family
        verdict_on = self.chosen_metric(self.metric, family)
        stages, headline = [], {}
        for stage, models in context.task_models.items():
            record: dict[str, Any] = {"stage": stage, "seeds": [subject.seed for subject in models]}
            for subject in models:
                context.keep("answers", subject, context.statistics(subject))
            for metric in family.metrics:
                estimate = interval(family.scorer(metric), self._statistics(context, stage), context.seed)
                record[metric] = estimate.record()
                headline[f"test/{metric}/{stage}"] = estimate.mean
                if context.clean is not None:
                    clean_rows = [each[context.clean] for each in self._statistics(context, stage)]
                    clean = interval(family.scorer(metric), clean_rows, context.seed)
                    record.setdefault("clean", {})[metric] = clean.record()
                    headline[f"test_clean/{metric}/{stage}"] = clean.mean
            stages.append(record)
        return {
            "family": family.name,
            "metrics": list(family.metrics),
            "examples": len(context.rows),
            "clean_examples": len(context.rows) if context.clean is None else int(context.clean.sum()),
            "resamples": RESAMPLES,
            "verdict_metric": verdict_on,
            "stages": stages,
            **compare_ladder(self.ladder, verdict_on, partial(self._compare, context), context),
            "headline": headline,
        }

    def _compare(self, context: EvaluationContext, before: str, after: str) -> dict[str, Difference]:
        first, second = self._statistics(context, before), self._statistics(context, after)
        return {
            metric: paired_difference(context.family.scorer(metric), first, second, context.seed)
            for metric in context.family.metrics
        }

    @staticmethod
    def _statistics(context: EvaluationContext, stage: str) -> list[NDArray[np.float64]]:
        return [context.statistics(subject) for subject in context.task_models[stage]]
