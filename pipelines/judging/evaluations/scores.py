"""Scores of every judged stage on any task family, and which step of a ladder of stages paid."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pipelines.judging.certainty.resampling import RESAMPLES, interval, paired_difference
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.ladder import compare_ladder

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.statistics import Difference
    from pipelines.judging.evaluations.stage import EvaluationContext


class ScoresEvaluation(Evaluation, name="scores"):
    """The family's metrics on the test table: mean over seeds, each seed, 95 % interval over seeds and examples.

    Consecutive stages of the ladder are compared on the same examples, and the last with the first: better when the
    difference is above zero after Holm's correction over all steps, worse when below, else one cannot tell.
    """

    paper = "doi:10.1214/07-AOAS122"

    ladder: tuple[str, ...] = ()
    """Stages in an order in which each adds one thing to the one before; none means no comparison."""
    metric: str | None = None
    """What the verdicts are about; None for the family's first metric."""

    @property
    def subjects(self) -> tuple[str, ...]:
        return self.ladder

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        family = evaluated.family
        verdict_on = self.chosen_metric(self.metric, family)
        stages, headline = [], {}
        for stage, models in evaluated.answering.items():
            record: dict[str, Any] = {"stage": stage, "seeds": [subject.seed for subject in models]}
            for metric in family.metrics:
                estimate = interval(family.scorer(metric), self._statistics(evaluated, stage), evaluated.seed)
                record[metric] = estimate.record()
                headline[f"test/{metric}/{stage}"] = estimate.mean
                if evaluated.clean is not None:
                    kept = [each[evaluated.clean] for each in self._statistics(evaluated, stage)]
                    clean = interval(family.scorer(metric), kept, evaluated.seed)
                    record.setdefault("clean", {})[metric] = clean.record()
                    headline[f"test_clean/{metric}/{stage}"] = clean.mean
            stages.append(record)
        return {
            "family": family.name,
            "metrics": list(family.metrics),
            "examples": len(evaluated.rows),
            "clean_examples": len(evaluated.rows) if evaluated.clean is None else int(evaluated.clean.sum()),
            "resamples": RESAMPLES,
            "verdict_metric": verdict_on,
            "stages": stages,
            **compare_ladder(self.ladder, verdict_on, partial(self._compare, evaluated), evaluated),
            "headline": headline,
        }

    def _compare(self, evaluated: EvaluationContext, before: str, after: str) -> dict[str, Difference]:
        first, second = self._statistics(evaluated, before), self._statistics(evaluated, after)
        return {
            metric: paired_difference(evaluated.family.scorer(metric), first, second, evaluated.seed)
            for metric in evaluated.family.metrics
        }

    @staticmethod
    def _statistics(evaluated: EvaluationContext, stage: str) -> list[NDArray[np.float64]]:
        return [evaluated.statistics(subject) for subject in evaluated.answering[stage]]
