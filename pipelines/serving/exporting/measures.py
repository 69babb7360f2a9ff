"""Comparison of runtimes: agreement of their answers, and interleaved timing."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.models.text_network import OutputKind
from pipelines.serving.answering.inference import softmax
from pipelines.serving.exported import RuntimeLatency
from pipelines.serving.runtimes import Compute
from pipelines.serving.runtimes.model_inputs import ModelInputs

SHAPES = ((1, 32), (1, 128), (32, 32), (32, 128))
"""(examples of a batch, tokens per row)"""
WARM = 2
"""Warm-up calls of each shape, which are not counted: the first calls allocate memory and compile."""
FEWER = 5
"""Larger batches are timed this many times less often than single examples."""


def served_answers(compute: Compute, batches: Sequence[ModelInputs], output: OutputKind) -> NDArray[np.float64]:
    """Answers [N, D] as served: probabilities of classes or labels, a score, or a vector."""
    outputs: list[NDArray[Any]] = [compute(*rows) for rows in batches]
    if output is OutputKind.CLASSES:
        outputs = [softmax(logits) for logits in outputs]
    elif output is OutputKind.LABELS:
        outputs = [1 / (1 + np.exp(-logits)) for logits in outputs]
    return np.concatenate(outputs).astype(np.float64)


def cosines(reference: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cosine [N] of two answers [N, D] to each text; [1] over all texts if an answer is one number.

    A single number has no direction, so its cosine is that of the deviations from the mean of `reference`.
    """
    if reference.shape[1] == 1:
        middle = reference.mean()
        reference, other = (reference - middle).T, (other - middle).T
    norms = np.linalg.norm(reference, axis=1) * np.linalg.norm(other, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: NDArray[np.float64] = (reference * other).sum(axis=1) / norms
    return np.nan_to_num(result, nan=0.0)


def time_interleaved(
    computes: Mapping[str, Compute],
    reference: str,
    tokens: NDArray[np.int64],
    shapes: Sequence[tuple[int, int]],
    rounds: int,
    orders: int = 1,
) -> dict[str, tuple[RuntimeLatency, ...]]:
    """Latencies of every runtime over batches of real `tokens`; `rounds` calls with one example, fewer with more.

    The runtimes are called alternately, so that other load on the machine slows all alike; ratios are within a round.
    """
    latencies: dict[str, list[RuntimeLatency]] = {name: [] for name in computes}
    for examples, length in shapes:
        calls = rounds if examples == 1 else max(3, rounds // FEWER)
        milliseconds: dict[str, list[float]] = {name: [] for name in computes}
        for turn in range(-WARM, calls):
            rows = batch_of(tokens, examples * orders, length, turn + WARM)
            for name, compute in computes.items():
                begun = time.perf_counter()
                compute(*rows)
                if turn >= 0:
                    milliseconds[name].append((time.perf_counter() - begun) * 1000)
        for name, times in milliseconds.items():
            ratios = np.asarray(milliseconds[reference]) / np.asarray(times)
            low, median, high = (float(value) for value in np.quantile(times, (0.1, 0.5, 0.9)))
            latencies[name].append(
                RuntimeLatency(
                    rows=examples,
                    tokens=length,
                    median_ms=round(median, 3),
                    p10_ms=round(low, 3),
                    p90_ms=round(high, 3),
                    calls=calls,
                    texts_a_second=round(examples * 1000 / median, 1),
                    speedup=round(float(np.median(ratios)), 3),
                )
            )
    return {name: tuple(measured) for name, measured in latencies.items()}


def overall(latencies: Sequence[RuntimeLatency], batch: int | None = None) -> float:
    """Geometric mean of the speed-ups, over all shapes or those with `batch` examples."""
    chosen = [latency.speedup for latency in latencies if batch is None or latency.rows == batch]
    return math.exp(sum(map(math.log, chosen)) / len(chosen))


def batch_of(tokens: NDArray[np.int64], rows: int, length: int, turn: int) -> ModelInputs:
    """Batch number `turn` of the stream of `tokens`, which repeats; without padding."""
    size = rows * length
    ids = np.take(tokens, np.arange(size) + turn * size, mode="wrap").reshape(rows, length)
    return ids, np.ones_like(ids), None
