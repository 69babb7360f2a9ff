"""Share of wrong answers, as a figure of claims about how many times fewer there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipelines.judging.certainty.resampling import RESAMPLES, interval
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.figures import RecordedFigure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import TaskFamily

ACCURACY = "accuracy"
ANSWERS = "answers"
"""The sample of task models' answers, which baselines without a network have too."""


class ErrorRateEvaluation(Evaluation, name="error_rate"):
    """One minus the accuracy of each judged stage on the test table, as papers of classifiers report it (Howard & Ruder
    2018, tables 2 to 7).

    A quotient of errors says more than a difference of accuracies where few are left: 10 % → 5 % is half of them. It
    needs an error: without any among n examples, half of one counts, 1 / 2n.
    """

    paper = "arXiv:1801.06146"
    reads = frozenset({"text_classification", "pair_classification"})

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [RecordedFigure("error", ANSWERS, error_of(family), lower=True, bounds=(0.0, 1.0))]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        score, stages, headline = error_of(context.family), [], {}
        for stage, models in context.task_models.items():
            samples = [context.statistics(subject) for subject in models]
            for subject, rows in zip(models, samples, strict=True):
                context.keep(ANSWERS, subject, rows)
            error = interval(score, samples, context.seed)
            stages.append({"stage": stage, "seeds": [subject.seed for subject in models], "error": error.record()})
            headline[f"error/{stage}"] = error.mean
        return {"examples": len(context.rows), "resamples": RESAMPLES, "stages": stages, "headline": headline}


def error_of(family: TaskFamily) -> Score:
    """Statistics [n, K] of any examples of `family` → the share that is answered wrong."""
    accuracy = family.scorer(ACCURACY)

    def error(rows: NDArray[np.float64]) -> float:
        return max(1.0 - accuracy(rows), 0.5 / max(1, len(rows)))

    return error
