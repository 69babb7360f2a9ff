"""How runtimes are compared: by what they answer, and by how long they take in turns."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.models.text_network import OutputKind
from pipelines.serving.answering.inference import softmax
from pipelines.serving.exported import RuntimeLatency
from pipelines.serving.runtimes import Compute
from pipelines.serving.runtimes.model_inputs import ModelInputs

SHAPES = ((1, 32), (1, 128), (32, 32), (32, 128))
"""Examples of a batch, tokens of each row."""
WARM = 2
"""Calls of each shape that are not counted: the first ones allocate, and compile."""
FEWER = 5
"""A batch of many is measured this many times less often than one of one."""


def served_answers(compute: Compute, batches: Sequence[ModelInputs], output: OutputKind) -> NDArray[np.float64]:
    """[N, D] as they would be served: probabilities of classes, a score, or a vector."""
    said = [compute(*rows) for rows in batches]
    if output is OutputKind.CLASSES:
        said = [softmax(scores) for scores in said]
    return np.concatenate(said).astype(np.float64)


def cosines(reference: NDArray[np.float64], found: NDArray[np.float64]) -> NDArray[np.float64]:
    """[N] how alike two answers [N, D] to each text are; [1] over all texts where an answer is one number.

    One number has no direction, so its cosine is that of how the texts differ from their mean in `reference`.
    """
    if reference.shape[1] == 1:
        middle = reference.mean()
        reference, found = (reference - middle).T, (found - middle).T
    norms = np.linalg.norm(reference, axis=1) * np.linalg.norm(found, axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        result: NDArray[np.float64] = (reference * found).sum(axis=1) / norms
    return np.nan_to_num(result, nan=0.0)


def time_interleaved(
    paths: Mapping[str, Compute],
    reference: str,
    tokens: NDArray[np.int64],
    shapes: Sequence[tuple[int, int]],
    rounds: int,
    orders: int = 1,
) -> dict[str, tuple[RuntimeLatency, ...]]:
    """Latencies of every path over batches of real `tokens`; `rounds` calls with one example, fewer with many.

    The paths take turns, so that a busy neighbour slows all alike, and ratios are of one round.
    """
    found: dict[str, list[RuntimeLatency]] = {name: [] for name in paths}
    for examples, length in shapes:
        calls = rounds if examples == 1 else max(3, rounds // FEWER)
        taken: dict[str, list[float]] = {name: [] for name in paths}
        for turn in range(-WARM, calls):
            rows = batch_of(tokens, examples * orders, length, turn + WARM)
            for name, compute in paths.items():
                begun = time.perf_counter()
                compute(*rows)
                if turn >= 0:
                    taken[name].append((time.perf_counter() - begun) * 1000)
        for name, times in taken.items():
            ratios = np.asarray(taken[reference]) / np.asarray(times)
            low, median, high = (float(value) for value in np.quantile(times, (0.1, 0.5, 0.9)))
            found[name].append(
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
    return {name: tuple(latencies) for name, latencies in found.items()}


def overall(latencies: Sequence[RuntimeLatency], batch: int | None = None) -> float:
    """The geometric mean of the speed-ups, over all shapes or those with `batch` examples."""
    chosen = [latency.speedup for latency in latencies if batch is None or latency.rows == batch]
    return math.exp(sum(map(math.log, chosen)) / len(chosen))


def batch_of(tokens: NDArray[np.int64], rows: int, length: int, turn: int) -> ModelInputs:
    """Batch number `turn` of the stream of `tokens`, which begins again at its end; no position is padding."""
    size = rows * length
    ids = np.take(tokens, np.arange(size) + turn * size, mode="wrap").reshape(rows, length)
    return ids, np.ones_like(ids), None
