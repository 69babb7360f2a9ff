"""Serving cost of classifiers next to their scores: parameters, bytes, operations, milliseconds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field

from pipelines.judging.certainty.statistics import METRICS, interval, paired_difference
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.evaluations.latency import BATCHES, THREADS, served_bytes, time_interleaved, timed_examples
from pipelines.judging.evaluations.saved_weights import is_packed, is_quantized, parameters, served_weights
from pipelines.lineage import hardware
from pipelines.networks.folder import ONNX

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.context import EvaluationContext

INSTRUCTIONS = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "asimddp", "i8mm")
"""Processor extensions that determine the speed of 8-bit arithmetic."""
COUNTED = 16
"""Test texts over which the operations of an answer are averaged."""


class FootprintEvaluation(Evaluation, name="footprint"):
    """Size, latency and score of chosen stages, all compared with the first.

    Latency is from a text to its probabilities, tokenizer included, on one thread, over real test texts. The models are
    timed alternately, in alternating order, so that other load on the machine slows all of them alike. Operations of an
    answer are counted as by `answer_operations`; a graph, which torch does not compute, has none.
    """

    reads = frozenset({"text_classification"})
    nondeterministic_keys = frozenset({"latency_ms", "machine"})

    stages: tuple[str, ...] = Field(min_length=1)
    """Stages to compare; the first seed of each is measured."""
    rounds: int = Field(100, ge=1, le=100_000)
    """Timed calls with one text; a third as many with thirty-two."""

    def tiny(self) -> Self:
        return self.model_copy(update={"rounds": 2})

    @property
    def subjects(self) -> tuple[str, ...]:
        return self.stages

    def forward_passes(self, size: EvaluationSize) -> Sequence[ForwardPasses]:
        return [ForwardPasses(timed_examples(self.rounds) * len(self.stages) / max(1, size.models), size.tokens)]

    def measure(self, context: EvaluationContext) -> dict[str, Any]:
        from pipelines.serving.answering.inference import open_predictor

        chosen = {stage: context.subjects[stage][0] for stage in self.stages}
        predictors = {stage: open_predictor(subject.folder, THREADS) for stage, subject in chosen.items()}
        answer = {stage: predictor.predict for stage, predictor in predictors.items()}
        milliseconds = time_interleaved(answer, context.test.texts, self.rounds)
        reference = context.predictions(chosen[self.stages[0]])[None, :]
        models = []
        headline = {}
        for stage, subject in chosen.items():
            predicted = context.predictions(subject)[None, :]
            served = served_weights(subject.folder)
            record: dict[str, Any] = {
                "stage": stage,
                "seed": subject.seed,
                "runtime": "onnxruntime" if served.name == ONNX else "torch",
                "weights": "int8" if is_quantized(served) else "packed" if is_packed(served) else "float32",
                "parameters": parameters(served),
                "bytes": served_bytes(subject.folder),
                "weight_bytes": served.stat().st_size,
                "operations": None if served.name == ONNX else _operations(answer[stage], context.test.texts[:COUNTED]),
                "latency_ms": {str(size): _quantiles(milliseconds[size][stage]) for size in BATCHES},
                "agreement": float((predicted == reference).mean()),
            }
            for metric in METRICS:
                arguments = (len(context.labels), context.seed)
                record[metric] = interval(metric, context.truth, predicted, *arguments).record()
                record[f"{metric}_difference"] = paired_difference(
                    metric, context.truth, reference, predicted, *arguments
                ).record()
            headline[f"megabytes/{stage}"] = record["bytes"] / 1e6
            headline[f"latency_ms/{stage}"] = record["latency_ms"]["1"]["median"]
            models.append(record)
        instructions = [name for name in INSTRUCTIONS if name in hardware.extensions()]
        machine = {"threads": THREADS, "processor": hardware.processor(), "instructions": instructions}
        return {"reference": self.stages[0], "machine": machine, "models": models, "headline": headline}


def _operations(predict: Callable[[Sequence[str]], object], texts: Sequence[str]) -> int:
    """Mean number of multiplications and additions of matrix products in an answer to one of `texts`."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        for text in texts:
            predict([text])
    return int(counter.get_total_flops() / len(texts))


def _quantiles(milliseconds: NDArray[np.float64]) -> dict[str, float]:
    """Median and 90th percentile of calls, in milliseconds."""
    import numpy as np

    return {
        "median": round(float(np.median(milliseconds)), 3),
        "p90": round(float(np.quantile(milliseconds, 0.9)), 3),
        "calls": len(milliseconds),
    }
