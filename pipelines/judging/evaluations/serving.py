"""What a model of any task costs to serve: bytes, and milliseconds from examples to answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import PositiveInt

from pipelines.judging.certainty.statistics import RESAMPLES
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.evaluations.latency import BATCHES, THREADS, served_bytes, time_interleaved, timed_examples

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.stage import EvaluationContext

TAILS = (0.025, 0.975)
"""The ends of an interval over rounds: percentiles of its resamples."""


class ServingEvaluation(Evaluation, name="serving"):
    """Bytes and latency of the judged stages side by side, for every task family; the first is what others are compared with.

    Latency is from examples to answers, tokenizer included, on one thread, over real test examples. The models take turns,
    in an order that turns too, so that a busy neighbour slows all of them alike.
    """

    measured = frozenset({"latency_ms", "times"})

    rounds: PositiveInt = 60
    """Measured calls with one example; a third as many with thirty-two."""

    def tiny(self) -> Self:
        return self.model_copy(update={"rounds": 3})

    def readings(self, asked: EvaluationSize) -> Sequence[ForwardPasses]:
        return [ForwardPasses(timed_examples(self.rounds), asked.tokens)]

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        from pipelines.serving.answering.answerer import Answerer

        chosen = {stage: models[0] for stage, models in evaluated.answering.items()}
        answerers = {stage: Answerer(subject.folder, THREADS) for stage, subject in chosen.items()}
        answer = {stage: answerer.answer for stage, answerer in answerers.items()}
        taken = time_interleaved(answer, evaluated.rows, self.rounds)
        first, *_, last = [*chosen, *chosen]
        times = {str(size): _quotient(taken[size][last], taken[size][first], evaluated.seed) for size in BATCHES}
        served: list[dict[str, Any]] = []
        for stage, subject in chosen.items():
            served.append(
                {
                    "stage": stage,
                    "seed": subject.seed,
                    "bytes": served_bytes(subject.folder),
                    "latency_ms": {str(size): _median(taken[size][stage], evaluated.seed) for size in BATCHES},
                }
            )
        headline = {f"megabytes/{one['stage']}": one["bytes"] / 1e6 for one in served}
        headline |= {f"latency_ms/{one['stage']}": one["latency_ms"]["1"]["median"] for one in served}
        return {"served": served, "of": first, "times": times, "threads": THREADS, "headline": headline}


def _median(taken: NDArray[np.float64], seed: int) -> dict[str, float]:
    """The median of calls, with its 95 % interval over them."""
    import numpy as np

    low, high = np.quantile(np.median(taken[_drawn(len(taken), seed)], axis=1), TAILS)
    found = {
        "median": float(np.median(taken)),
        "low": float(low),
        "high": float(high),
        "p90": float(np.quantile(taken, 0.9)),
    }
    return {key: round(value, 3) for key, value in found.items()} | {"calls": len(taken)}


def _quotient(taken: NDArray[np.float64], of: NDArray[np.float64], seed: int) -> dict[str, float]:
    """The quotient of two medians, with its 95 % interval over the rounds, in each of which both made the same call."""
    import numpy as np

    drawn = _drawn(len(taken), seed)
    low, high = np.quantile(np.median(taken[drawn], axis=1) / np.median(of[drawn], axis=1), TAILS)
    found = {"quotient": float(np.median(taken) / np.median(of)), "low": float(low), "high": float(high)}
    return {key: round(value, 4) for key, value in found.items()}


def _drawn(rounds: int, seed: int) -> NDArray[np.int64]:
    """[R, rounds]: the rounds of each resample."""
    import numpy as np

    return np.random.default_rng(seed).integers(0, rounds, size=(RESAMPLES, rounds))
