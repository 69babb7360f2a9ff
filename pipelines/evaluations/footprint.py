"""What a model costs to serve: parameters, bytes, milliseconds, beside what it scores."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, PositiveInt

from pipelines.evaluations import Evaluation
from pipelines.evaluations.statistics import METRICS, interval, paired_difference
from pipelines.foreign import safetensors_header
from pipelines.inference import CONFIGURATION, ONNX, SAFETENSORS

if TYPE_CHECKING:
    from pipelines.evaluations.stage import Evaluated
    from pipelines.inference import Predictor

BATCHES = (1, 32)
THREADS = 1
SERVED = (*CONFIGURATION, ONNX, SAFETENSORS)
INSTRUCTIONS = ("avx2", "avx512f", "avx_vnni", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16", "asimddp", "i8mm")
"""Processor extensions that decide how fast 8-bit arithmetic is."""


class Footprint(Evaluation, name="footprint"):
    """Size, latency and score of chosen stages side by side; the first is what the others are compared with.

    Latency is from a text to its probabilities, tokenizer included, on one thread, over real test texts. The models
    take turns, so that a busy neighbour slows all of them alike.
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

    def measure(self, evaluated: Evaluated) -> dict[str, Any]:
        from pipelines.inference import load_predictor

        chosen = {stage: evaluated.subjects[stage][0] for stage in self.stages}
        predictors = {stage: load_predictor(subject.folder, THREADS) for stage, subject in chosen.items()}
        latency = {size: self._latency(predictors, evaluated.test.texts, size) for size in BATCHES}
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
                "bytes": sum(path.stat().st_size for name in SERVED if (path := subject.folder / name).is_file()),
                "weight_bytes": served.stat().st_size,
                "latency_ms": {str(size): latency[size][stage] for size in BATCHES},
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
        machine = {"threads": THREADS, "processor": _processor(), "instructions": _instructions()}
        return {"reference": self.stages[0], "machine": machine, "models": models, "headline": headline}

    def _latency(
        self, predictors: dict[str, Predictor], texts: Sequence[str], size: int
    ) -> dict[str, dict[str, float]]:
        """Milliseconds of one call with `size` texts: median and 90th percentile of each predictor."""
        import numpy as np

        rounds = self.rounds if size == 1 else max(1, self.rounds // 3)
        batches = [[texts[(start * size + line) % len(texts)] for line in range(size)] for start in range(rounds)]
        taken: dict[str, list[float]] = {stage: [] for stage in predictors}
        for predictor in predictors.values():  # the first calls allocate
            predictor.predict(batches[0], size)
            predictor.predict(batches[-1], size)
        for batch in batches:
            for stage, predictor in predictors.items():
                taken[stage].append(_milliseconds(partial(predictor.predict, batch, size)))
        return {
            stage: {
                "median": round(float(np.median(values)), 3),
                "p90": round(float(np.quantile(values, 0.9)), 3),
                "calls": len(values),
            }
            for stage, values in taken.items()
        }


def _milliseconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return (time.perf_counter() - started) * 1000


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


def _processor() -> str:
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _instructions() -> list[str]:
    flags = set((_cpuinfo("flags") or _cpuinfo("Features")).split())
    return [name for name in INSTRUCTIONS if name in flags]


def _cpuinfo(key: str) -> str:
    """The first value of `key` that Linux tells of its processors; empty elsewhere."""
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return ""
    for line in path.read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() == key:
            return value.strip()
    return ""
