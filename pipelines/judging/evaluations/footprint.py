"""What a model costs to serve: parameters, bytes, milliseconds, beside what it scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PositiveInt

from pipelines.judging.certainty.statistics import METRICS, interval, paired_difference
from pipelines.judging.evaluations import Evaluation
from pipelines.judging.evaluations.forward_passes import EvaluationSize, ForwardPasses
from pipelines.judging.evaluations.latency import BATCHES, THREADS, served_bytes, time_interleaved, timed_examples
from pipelines.lineage import hardware
from pipelines.models.untrusted import safetensors_header
from pipelines.networks.folder import ONNX, SAFETENSORS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipelines.judging.evaluations.stage import EvaluationContext

INSTRUCTIONS = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "asimddp", "i8mm")
"""Processor extensions that decide how fast 8-bit arithmetic is."""


class FootprintEvaluation(Evaluation, name="footprint"):
    """Size, latency and score of chosen stages side by side; the first is what the others are compared with.

    Latency is from a text to its probabilities, tokenizer included, on one thread, over real test texts. The models
    take turns, in an order that turns too, so that a busy neighbour slows all of them alike.
    """

    reads = frozenset({"text_classification"})
    measured = frozenset({"latency_ms", "machine"})

    stages: tuple[str, ...] = Field(min_length=1)
    """Stages to lay side by side; the first seed of each is measured."""
    rounds: PositiveInt = 100
    """Measured calls with one text; a third as many with thirty-two."""

    def tiny(self) -> Self:
        return self.model_copy(update={"rounds": 2})

    @property
    def subjects(self) -> tuple[str, ...]:
        return self.stages

    def readings(self, asked: EvaluationSize) -> Sequence[ForwardPasses]:
        return [ForwardPasses(timed_examples(self.rounds) * len(self.stages) / max(1, asked.models), asked.tokens)]

    def measure(self, evaluated: EvaluationContext) -> dict[str, Any]:
        from pipelines.serving.answering.inference import load_predictor

        chosen = {stage: evaluated.subjects[stage][0] for stage in self.stages}
        predictors = {stage: load_predictor(subject.folder, THREADS) for stage, subject in chosen.items()}
        answer = {stage: predictor.predict for stage, predictor in predictors.items()}
        taken = time_interleaved(answer, evaluated.test.texts, self.rounds)
        reference = evaluated.predictions(chosen[self.stages[0]])[None, :]
        models = []
        headline = {}
        for stage, subject in chosen.items():
            predicted = evaluated.predictions(subject)[None, :]
            served = subject.folder / (ONNX if (subject.folder / ONNX).is_file() else SAFETENSORS)
            record: dict[str, Any] = {
                "stage": stage,
                "seed": subject.seed,
                "runtime": "onnxruntime" if served.name == ONNX else "torch",
                "weights": "int8" if _is_quantized(served) else "float32",
                "parameters": _parameters(served),
                "bytes": served_bytes(subject.folder),
                "weight_bytes": served.stat().st_size,
                "latency_ms": {str(size): _quantiles(taken[size][stage]) for size in BATCHES},
                "agreement": float((predicted == reference).mean()),
            }
            for metric in METRICS:
                arguments = (len(evaluated.labels), evaluated.seed)
                record[metric] = interval(metric, evaluated.truth, predicted, *arguments).record()
                record[f"{metric}_difference"] = paired_difference(
                    metric, evaluated.truth, reference, predicted, *arguments
                ).record()
            headline[f"megabytes/{stage}"] = record["bytes"] / 1e6
            headline[f"latency_ms/{stage}"] = record["latency_ms"]["1"]["median"]
            models.append(record)
        instructions = [name for name in INSTRUCTIONS if name in hardware.extensions()]
        machine = {"threads": THREADS, "processor": hardware.processor(), "instructions": instructions}
        return {"reference": self.stages[0], "machine": machine, "models": models, "headline": headline}


def _quantiles(taken: NDArray[np.float64]) -> dict[str, float]:
    """Median and 90th percentile of calls, in milliseconds."""
    import numpy as np

    return {
        "median": round(float(np.median(taken)), 3),
        "p90": round(float(np.quantile(taken, 0.9)), 3),
        "calls": len(taken),
    }


def _parameters(weights: Path) -> int:
    """Numbers that training sets. In ONNX: the initialisers, without the scales and zero points of quantization."""
    if weights.name == SAFETENSORS:
        header = safetensors_header(weights)
        return sum(_product(entry["shape"]) for name, entry in header.items() if name != "__metadata__")
    return sum(
        _product(tensor.dims)
        for tensor in _initializers(weights)
        if len(tensor.dims) and not tensor.name.endswith(("_scale", "_zero_point"))
    )


def _is_quantized(weights: Path) -> bool:
    return weights.name == ONNX and any(tensor.data_type in (2, 3) for tensor in _initializers(weights))


def _initializers(weights: Path) -> Sequence[Any]:
    import onnx

    graph: Sequence[Any] = onnx.load(weights, load_external_data=False).graph.initializer
    return graph


def _product(shape: Sequence[int]) -> int:
    result = 1
    for size in shape:
        result *= int(size)
    return result
