"""Whether a model's probabilities are what they say: calibration error, Brier score, reliability diagram."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.judging.certainty.resampling import RESAMPLES, interval
from pipelines.judging.evaluations import Evaluation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.certainty.resampling import Score
    from pipelines.judging.evaluations.stage import EvaluationContext
    from pipelines.judging.subjects import Subject

CONFIDENCE, RIGHT, SQUARES = range(3)
"""Columns of an example's statistics: probability of the class it was given, 1 where that is right, its Brier score."""


class CalibrationEvaluation(Evaluation, name="calibration"):
    """Expected calibration error in bins of equal width and of equal mass, Brier score, and the bins as a reliability diagram.

    The error is the mean over all texts of |share right − mean confidence| of the bin that a text is in (Guo et al. 2017, eq. 3).
    It is never below zero, so that chance alone makes it larger, and drawing texts anew makes it larger still: by as much its
    interval is moved down (Davison & Hinkley 1997, §2.2), and it begins at zero where a model whose confidence is exactly
    right shows as much on one in twenty such tables (`by_chance`; Bröcker & Smith 2007). What has no such trouble is how much
    the mean confidence lies above the accuracy (`overconfidence`). The Brier score sums over classes and lies between 0
    and 2 (Brier 1950).
    """

    paper = "arXiv:1706.04599"
    reads = frozenset({"text_classification"})

    bins: int = Field(15, ge=2, le=100)
    """Bins of the calibration error."""
    points: int = Field(10, ge=2, le=50)
    """Points of the reliability diagram, each with as many texts as the others."""

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        """Raises RecipeError for a stage whose model gives classes no probabilities."""
        import numpy as np

        scores: dict[str, Score] = {
            "equal_width": lambda rows: equal_width_error(rows[:, CONFIDENCE], rows[:, RIGHT], self.bins),
            "equal_mass": lambda rows: equal_mass_error(rows[:, CONFIDENCE], rows[:, RIGHT], self.bins),
        }
        stages, headline = [], {}
        for stage, models in evaluated.answering.items():
            rows = [_statistics(evaluated, subject) for subject in models]
            record: dict[str, Any] = {
                "stage": stage,
                "seeds": [subject.seed for subject in models],
                "ece": {kind: error(score, rows, evaluated.seed) for kind, score in scores.items()},
                "overconfidence": interval(_overconfidence, rows, evaluated.seed).record(),
                "brier": interval(partial(_mean, SQUARES), rows, evaluated.seed, reach=2.0).record(),
            }
            for name, column in (("confidence", CONFIDENCE), ("accuracy", RIGHT)):
                record[name] = interval(partial(_mean, column), rows, evaluated.seed).record()
            record["diagram"] = diagram(np.concatenate(rows), self.points)
            headline[f"ece/{stage}"] = record["ece"]["equal_mass"]["mean"]
            headline[f"brier/{stage}"] = record["brier"]["mean"]
            stages.append(record)
        return {
            "ece": list(scores),
            "bins": self.bins,
            "examples": len(evaluated.rows),
            "resamples": RESAMPLES,
            "stages": stages,
            "headline": headline,
        }


def equal_width_error(confidence: NDArray[np.float64], right: NDArray[np.float64], bins: int) -> float:
    """The calibration error of `confidence` [N] against `right` [N] over bins (0, 1/B], (1/B, 2/B] … (1 − 1/B, 1]."""
    import numpy as np

    number = np.clip(np.ceil(confidence * bins).astype(np.int64) - 1, 0, bins - 1)
    return float(np.abs(np.bincount(number, confidence - right, minlength=bins)).sum() / len(right))


def equal_mass_error(confidence: NDArray[np.float64], right: NDArray[np.float64], bins: int) -> float:
    """The same over bins of N/B texts each, from the least confident to the most (Nixon et al. 2019, arXiv:1904.01685, §3.3)."""
    import numpy as np

    gaps = (confidence - right)[np.argsort(confidence, kind="stable")]
    return float(np.abs(np.add.reduceat(gaps, _bounds(len(gaps), bins)[:-1])).sum() / len(right))


def diagram(rows: NDArray[np.float64], points: int) -> list[dict[str, Any]]:
    """For each bin of equal mass: mean confidence, share right with its Wilson interval, and texts."""
    import numpy as np
    from scipy.stats import binomtest

    ordered = rows[np.argsort(rows[:, CONFIDENCE], kind="stable")]
    bounds = _bounds(len(rows), points)
    found = []
    for first, behind in pairwise(bounds):
        bin_ = ordered[first:behind]
        right = int(bin_[:, RIGHT].sum())
        ends = binomtest(right, len(bin_)).proportion_ci(0.95, "wilson")
        found.append(
            {
                "confidence": float(bin_[:, CONFIDENCE].mean()),
                "accuracy": right / len(bin_),
                "low": float(ends.low),
                "high": float(ends.high),
                "answers": len(bin_),
            }
        )
    return found


def _statistics(evaluated: EvaluationContext, subject: Subject) -> NDArray[np.float64]:
    """[N, 3]: confidence, right, Brier score of each test text."""
    import numpy as np

    if not evaluated.has_class_probabilities(subject):
        raise RecipeError(
            f"evaluation calibration: {subject.stage} says an answer and gives no class a probability, so there is nothing to "
            "calibrate; judge stages whose head weighs classes"
        )
    probabilities = evaluated.probabilities(subject).astype(np.float64)
    given = probabilities.argmax(axis=1)
    wanted = np.eye(probabilities.shape[1])[evaluated.truth]
    right = (given == evaluated.truth).astype(np.float64)
    return np.stack([probabilities.max(axis=1), right, ((probabilities - wanted) ** 2).sum(axis=1)], axis=1)


def error(score: Score, rows: Sequence[NDArray[np.float64]], seed: int, resamples: int = RESAMPLES) -> dict[str, Any]:
    """The record of a calibration error over `rows` (S arrays [N, 3], one a seed): its interval without its bias, `by_chance`."""
    import numpy as np

    found = interval(score, rows, seed, resamples)
    random = np.random.default_rng([seed, 11])
    size = len(rows[0])
    again, perfect = np.zeros(resamples), np.zeros(resamples)
    for turn in range(resamples):
        # a text is drawn, and easy or hard, for all seeds alike
        drawn, luck = random.integers(0, size, size), random.random(size)
        for some in rows:
            right = (luck < some[:, CONFIDENCE]).astype(np.float64)
            again[turn] += score(some[drawn]) / len(rows)
            perfect[turn] += score(np.stack([some[:, CONFIDENCE], right], axis=1)) / len(rows)
    bias = max(0.0, float(again.mean()) - found.mean)
    chance = float(np.quantile(perfect, 0.95))
    low = 0.0 if found.mean <= chance else max(0.0, found.low - bias)
    return found.record() | {"low": low, "high": max(found.high - bias, low), "by_chance": chance}


def _overconfidence(rows: NDArray[np.float64]) -> float:
    return float((rows[:, CONFIDENCE] - rows[:, RIGHT]).mean())


def _mean(column: int, rows: NDArray[np.float64]) -> float:
    return float(rows[:, column].mean())


def _bounds(size: int, bins: int) -> list[int]:
    """Where bins of equal mass begin, and `size`; fewer where there are fewer texts than bins."""
    bins = min(bins, size)
    return [round(number * size / bins) for number in range(bins + 1)]
