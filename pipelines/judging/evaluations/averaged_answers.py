"""Averaged answers: what an ensemble of a stage's seeds scores, against a single one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipelines.errors import RecipeError
from pipelines.judging.certainty.resampling import interval
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.figures import RecordedFigure

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import TaskFamily

SAMPLE = "averaged_answers"
DIGITS = 6


class AveragedAnswersEvaluation(Evaluation, name="averaged_answers"):
    """Scores of the answer whose probability, averaged over the seeds of a stage, is largest (Che et al. 2018).

    Networks that were trained alike from other random numbers make different mistakes. The gain is the score of the
    average minus that of a single network, in the mean over the networks. The record has the mean score of averages of
    one, two … networks, of each neighbouring group of seeds.
    """

    paper = "arXiv:1807.03121"
    reads = frozenset({"text_classification"})

    metric: str | None = None
    """Metric of the growth with the number of networks; None for the family's first."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [
            figure
            for metric in family.metrics
            for figure in (
                RecordedFigure(f"{metric}_of_average", SAMPLE, of_average(family.scorer(metric)), bounds=(-1.0, 1.0)),
                RecordedFigure(f"{metric}_gain_of_average", SAMPLE, gain(family.scorer(metric)), bounds=(-2.0, 2.0)),
            )
        ]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """Raises RecipeError for a metric that the family does not have, or a stage that gives no probabilities."""
        import numpy as np

        family = context.family
        score = family.scorer(metric := self.chosen_metric(self.metric, family))
        stages, headline = [], {}
        for stage, models in context.task_models.items():
            if not all(map(context.has_class_probabilities, models)):
                raise RecipeError(
                    f"evaluation {self.name}: {stage} gives its answers no probabilities that could be averaged; leave "
                    "this stage out"
                )
            probabilities = np.stack([context.probabilities(subject) for subject in models]).astype(np.float64)
            average = self._statistics(context, probabilities.mean(axis=0))
            samples = [np.hstack([average, context.statistics(subject)]) for subject in models]
            for subject, sample in zip(models, samples, strict=True):
                context.keep(SAMPLE, subject, sample)
            record: dict[str, Any] = {"stage": stage, "seeds": [subject.seed for subject in models]}
            for figure in self.figures(family):
                estimate = interval(figure.score, samples, context.seed, reach=2.0, least=-2.0)
                record[figure.name] = estimate.record()
                headline[f"{figure.name}/{stage}"] = estimate.mean
            record["networks"] = [
                {"networks": size, metric: round(self._of_groups(context, probabilities, size, score), DIGITS)}
                for size in range(1, len(models) + 1)
            ]
            stages.append(record)
        return {"metric": metric, "examples": len(context.rows), "stages": stages, "headline": headline}

    def _of_groups(
        self, context: EvaluationContext, probabilities: NDArray[np.float64], size: int, score: Score
    ) -> float:
        """Mean score of the averages of `size` networks, one group beginning at each of `probabilities` [S, N, C]."""
        import numpy as np

        networks = len(probabilities)
        groups = [(np.arange(size) + first) % networks for first in range(networks if size < networks else 1)]
        scores = [score(self._statistics(context, probabilities[group].mean(axis=0))) for group in groups]
        return sum(scores) / len(scores)

    @staticmethod
    def _statistics(context: EvaluationContext, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
        """The family's statistics [N, K] of the most probable answers by `probabilities` [N, C]."""
        answers = [context.labels[choice] for choice in probabilities.argmax(axis=1)]
        return context.family.statistics(context.gold, answers, context.labels)


def of_average(score: Score) -> Score:
    """Score of rows [n, 2K], the statistics of the averaged answers and a network's own: that of the average."""
    return lambda rows: score(rows[:, : rows.shape[1] // 2])


def gain(score: Score) -> Score:
    """Score of rows [n, 2K], the statistics of the averaged answers and a network's own: by how much the average is
    better."""
    return lambda rows: score(rows[:, : rows.shape[1] // 2]) - score(rows[:, rows.shape[1] // 2 :])
