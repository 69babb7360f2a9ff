"""Calibration of class probabilities: expected calibration error, Brier score, reliability diagram."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.judging.certainty.resampling import RESAMPLES, interval
from pipelines.judging.evaluations import Evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.judging.subjects import Subject

CONFIDENCE, CORRECT, BRIER = range(3)
"""Columns of an example's statistics: probability of the predicted class, 1 if it is correct, Brier score."""


class CalibrationEvaluation(Evaluation, name="calibration"):
    """Expected calibration error in bins of equal width and of equal mass, Brier score, and a reliability diagram.

    The error is the mean over all texts of |accuracy − mean confidence| of the text's bin (Guo et al. 2017, eq. 3). It
    is never negative, so it is biased upwards by sampling noise, and resampling adds to the bias. The interval is
    therefore shifted down by the estimated bias (Davison & Hinkley 1997, §2.2), and it begins at zero if a perfectly
    calibrated model would show an error as large on one of twenty such tables (`by_chance`; Bröcker & Smith 2007). The
    mean confidence minus the accuracy (`overconfidence`) has no such bias. The Brier score sums over classes and lies
    between 0 and 2 (Brier 1950).
    """

    paper = "arXiv:1706.04599"
    reads = frozenset({"text_classification"})

    bins: int = Field(15, ge=2, le=100)
    """Bins of the calibration error."""
    points: int = Field(10, ge=2, le=50)
    """Points of the reliability diagram, each with the same number of texts."""
    resamples: int = Field(RESAMPLES, ge=20, le=1_000_000)
    """Resampled tables of every interval."""

    def tiny(self) -> Self:
        return self.model_copy(update={"resamples": 20})

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        """Raises RecipeError for a stage whose model gives no class probabilities."""
        import numpy as np

        scores: dict[str, Score] = {
            "equal_width": lambda rows: equal_width_error(rows[:, CONFIDENCE], rows[:, CORRECT], self.bins),
            "equal_mass": lambda rows: equal_mass_error(rows[:, CONFIDENCE], rows[:, CORRECT], self.bins),
        }
        stages, headline = [], {}
        for stage, models in context.task_models.items():
            rows = [_statistics(context, subject) for subject in models]
            record: dict[str, Any] = {
                "stage": stage,
                "seeds": [subject.seed for subject in models],
                "ece": {kind: error(score, rows, context.seed, self.resamples) for kind, score in scores.items()},
                "overconfidence": interval(_overconfidence, rows, context.seed, self.resamples).record(),
                "brier": interval(partial(_mean, BRIER), rows, context.seed, self.resamples, reach=2.0).record(),
            }
            for name, column in (("confidence", CONFIDENCE), ("accuracy", CORRECT)):
                record[name] = interval(partial(_mean, column), rows, context.seed, self.resamples).record()
            record["diagram"] = diagram(np.concatenate(rows), self.points)
            headline[f"ece/{stage}"] = record["ece"]["equal_mass"]["mean"]
            headline[f"brier/{stage}"] = record["brier"]["mean"]
            stages.append(record)
        return {
            "ece": list(scores),
            "bins": self.bins,
            "examples": len(context.rows),
            "resamples": self.resamples,
            "stages": stages,
            "headline": headline,
        }


def equal_width_error(confidence: NDArray[np.float64], correct: NDArray[np.float64], bins: int) -> float:
    """Calibration error of `confidence` [N] against `correct` [N] over bins (0, 1/B], (1/B, 2/B] … (1 − 1/B, 1]."""
    import numpy as np

    number = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    return float(np.abs(np.bincount(number, confidence - correct, minlength=bins)).sum() / len(correct))


def equal_mass_error(confidence: NDArray[np.float64], correct: NDArray[np.float64], bins: int) -> float:
    """Calibration error over bins of N/B texts each, by ascending confidence (Nixon et al. 2019, arXiv:1904.01685,
    §3.3)."""
    import numpy as np

    gaps = (confidence - correct)[np.argsort(confidence, kind="stable")]
    return float(np.abs(np.add.reduceat(gaps, _bounds(len(gaps), bins)[:-1])).sum() / len(correct))


def diagram(rows: NDArray[np.float64], points: int) -> list[dict[str, Any]]:
    """For each bin of equal mass: mean confidence, accuracy with its Wilson interval, and number of texts."""
    import numpy as np
    from scipy.stats import binomtest

    ordered = rows[np.argsort(rows[:, CONFIDENCE], kind="stable")]
    bounds = _bounds(len(rows), points)
    records = []
    for first, end in pairwise(bounds):
        bin_ = ordered[first:end]
        correct = int(bin_[:, CORRECT].sum())
        ends = binomtest(correct, len(bin_)).proportion_ci(0.95, "wilson")
        records.append(
            {
                "confidence": float(bin_[:, CONFIDENCE].mean()),
                "accuracy": correct / len(bin_),
                "low": float(ends.low),
                "high": float(ends.high),
                "answers": len(bin_),
            }
        )
    return records


def _statistics(context: EvaluationContext, subject: Subject) -> NDArray[np.float64]:
    """Confidence, correctness and Brier score [N, 3] of each test text."""
    import numpy as np

    if not context.has_class_probabilities(subject):
        raise RecipeError(
            f"evaluation calibration: {subject.stage} returns answers without class probabilities, so there is "
            "nothing to calibrate; name stages whose head classifies"
        )
    probabilities = context.probabilities(subject).astype(np.float64)
    predicted = probabilities.argmax(axis=1)
    one_hot = np.eye(probabilities.shape[1])[context.truth]
    correct = (predicted == context.truth).astype(np.float64)
    return np.stack([probabilities.max(axis=1), correct, ((probabilities - one_hot) ** 2).sum(axis=1)], axis=1)


def error(score: Score, rows: Sequence[NDArray[np.float64]], seed: int, resamples: int = RESAMPLES) -> dict[str, Any]:
    """Record of a calibration error over `rows` (S arrays [N, 3], one per seed): bias-corrected interval, and
    `by_chance`."""
    import numpy as np

    estimate = interval(score, rows, seed, resamples)
    random = np.random.default_rng([seed, 11])
    size = len(rows[0])
    resampled, perfect = np.zeros(resamples), np.zeros(resamples)
    for turn in range(resamples):
        # the same texts are drawn for all seeds, and each text has one random number, shared by the seeds
        drawn, uniform = random.integers(0, size, size), random.random(size)
        for model in rows:
            correct = (uniform < model[:, CONFIDENCE]).astype(np.float64)
            resampled[turn] += score(model[drawn]) / len(rows)
            perfect[turn] += score(np.stack([model[:, CONFIDENCE], correct], axis=1)) / len(rows)
    bias = max(0.0, float(resampled.mean()) - estimate.mean)
    chance = float(np.quantile(perfect, 0.95))
    low = 0.0 if estimate.mean <= chance else max(0.0, estimate.low - bias)
    return estimate.record() | {"low": low, "high": max(estimate.high - bias, low), "by_chance": chance}


def _overconfidence(rows: NDArray[np.float64]) -> float:
    return float((rows[:, CONFIDENCE] - rows[:, CORRECT]).mean())


def _mean(column: int, rows: NDArray[np.float64]) -> float:
    return float(rows[:, column].mean())


def _bounds(size: int, bins: int) -> list[int]:
    """First index of each of up to `bins` bins of equal mass, and `size`; fewer bins if there are fewer texts."""
    bins = min(bins, size)
    return [round(number * size / bins) for number in range(bins + 1)]
