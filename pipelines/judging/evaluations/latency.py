"""Serving cost of a model: the size of its files, and milliseconds from examples to answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pipelines.networks.folder import CONFIGURATION, ONNX, SAFETENSORS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

T = TypeVar("T")

BATCHES = (1, 32)
"""Examples in a timed call."""
THREADS = 1
"""Processor threads of a timed call."""


def served_bytes(folder: Path) -> int:
    """Bytes of the files that serving the model needs."""
    parts = (folder / name for name in (*CONFIGURATION, ONNX, SAFETENSORS))
    return sum(path.stat().st_size for path in parts if path.is_file())


def time_interleaved(
    answer: Mapping[str, Callable[[Sequence[T]], object]], examples: Sequence[T], rounds: int
) -> dict[int, dict[str, NDArray[np.float64]]]:
    """Batch size → model → milliseconds [R] of each call: `rounds` calls with one example, a third as many with more.

    In each round all models answer the same examples, in alternating order, so that other load on the machine slows all
    of them alike.
    """
    return {size: _time_interleaved(answer, examples, size, _calls(size, rounds)) for size in BATCHES}


def timed_examples(rounds: int) -> int:
    """Number of examples that each model answers in `rounds` of `time_interleaved`, without warm-up."""
    return sum(size * _calls(size, rounds) for size in BATCHES)


def _calls(size: int, rounds: int) -> int:
    """Number of calls with batches of `size`."""
    return rounds if size == 1 else max(1, rounds // 3)


def _time_interleaved(
    answer: Mapping[str, Callable[[Sequence[T]], object]], examples: Sequence[T], size: int, rounds: int
) -> dict[str, NDArray[np.float64]]:
    import numpy as np

    batches = [[examples[(start * size + line) % len(examples)] for line in range(size)] for start in range(rounds)]
    for call in answer.values():  # warm-up: the first calls allocate memory
        call(batches[0])
        call(batches[-1])
    milliseconds: dict[str, list[float]] = {name: [] for name in answer}
    for turn, batch in enumerate(batches):
        for name in list(answer) if turn % 2 == 0 else list(answer)[::-1]:
            started = time.perf_counter()
            answer[name](batch)
            milliseconds[name].append((time.perf_counter() - started) * 1000)
    return {name: np.asarray(values) for name, values in milliseconds.items()}
