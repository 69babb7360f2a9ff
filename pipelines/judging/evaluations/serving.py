"""Serving cost of models of any task: bytes, and milliseconds from examples to answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from pipelines.judging.certainty.statistics import RESAMPLES
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.evaluations.latency import BATCHES, THREADS, served_bytes, time_interleaved, timed_examples
from pipelines.judging.figures import RecordedFigure, middle_mean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext
    from pipelines.task_families import TaskFamily

TAILS = (0.025, 0.975)
"""Ends of a 95 % interval over rounds, as quantiles of its resamples."""
TIMED_BATCHES = dict(zip(BATCHES, ("latency_ms", "latency_ms_of_a_batch"), strict=True))
"""Examples in a timed call → figure: the mean of the middle half of the calls, in milliseconds."""


class ServingEvaluation(Evaluation, name="serving"):
    """Bytes and latency of the judged stages, for every task family; all are compared with the first.

    Latency is from examples to answers, tokenizer included, on one thread, over real test examples. The models are
    timed alternately, in alternating order, so that other load on the machine slows all of them alike.
    """

    nondeterministic_keys = frozenset({"latency_ms", "times"})

    rounds: int = Field(60, ge=1, le=100_000)
    """Timed calls with one example; a third as many with thirty-two."""

    @classmethod
    def figures(cls, family: TaskFamily) -> Sequence[RecordedFigure]:
        return [
            RecordedFigure(name, name, middle_mean, True, "ms", bounds=(0.0, float("inf")))
            for name in TIMED_BATCHES.values()
        ]

    def tiny(self) -> Self:
        return self.model_copy(update={"rounds": 3})

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        return [ForwardPasses(timed_examples(self.rounds), size.tokens)]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        from pipelines.serving.answering.answerer import Answerer

        chosen = {stage: models[0] for stage, models in context.task_models.items()}
        answerers = {stage: Answerer(subject.folder, THREADS) for stage, subject in chosen.items()}
        answer = {stage: answerer.answer for stage, answerer in answerers.items()}
        milliseconds = time_interleaved(answer, context.rows, self.rounds)
        first, *_, last = [*chosen, *chosen]
        times = {
            str(size): _quotient(milliseconds[size][last], milliseconds[size][first], context.seed) for size in BATCHES
        }
        served: list[dict[str, Any]] = []
        for stage, subject in chosen.items():
            for size, name in TIMED_BATCHES.items():
                context.keep(name, subject, milliseconds[size][stage][:, None], timed=True)
            served.append(
                {
                    "stage": stage,
                    "seed": subject.seed,
                    "bytes": served_bytes(subject.folder),
                    "latency_ms": {str(size): _median(milliseconds[size][stage], context.seed) for size in BATCHES},
                }
            )
        headline = {f"megabytes/{one['stage']}": one["bytes"] / 1e6 for one in served}
        headline |= {f"latency_ms/{one['stage']}": one["latency_ms"]["1"]["median"] for one in served}
        return {"served": served, "of": first, "times": times, "threads": THREADS, "headline": headline}


def _median(milliseconds: NDArray[np.float64], seed: int) -> dict[str, float]:
    """Median of calls, with its 95 % interval over them."""
    import numpy as np

    low, high = np.quantile(np.median(milliseconds[_resampled_rounds(len(milliseconds), seed)], axis=1), TAILS)
    figures = {
        "median": float(np.median(milliseconds)),
        "low": float(low),
        "high": float(high),
        "p90": float(np.quantile(milliseconds, 0.9)),
    }
    return {key: round(value, 3) for key, value in figures.items()} | {"calls": len(milliseconds)}


def _quotient(milliseconds: NDArray[np.float64], of: NDArray[np.float64], seed: int) -> dict[str, float]:
    """Ratio of two medians, with its 95 % interval over the rounds; both models make the same call in each round."""
    import numpy as np

    drawn = _resampled_rounds(len(milliseconds), seed)
    low, high = np.quantile(np.median(milliseconds[drawn], axis=1) / np.median(of[drawn], axis=1), TAILS)
    figures = {"quotient": float(np.median(milliseconds) / np.median(of)), "low": float(low), "high": float(high)}
    return {key: round(value, 4) for key, value in figures.items()}


def _resampled_rounds(rounds: int, seed: int) -> NDArray[np.int64]:
    """Indices [R, rounds] of the rounds of each resample."""
    import numpy as np

    return np.random.default_rng(seed).integers(0, rounds, size=(RESAMPLES, rounds))
