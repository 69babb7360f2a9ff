"""What a model takes to serve: the files that it needs, and milliseconds from examples to answers."""

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
"""Examples in a measured call."""
THREADS = 1


def served_bytes(folder: Path) -> int:
    """Of the files with which a model is served."""
    parts = (folder / name for name in (*CONFIGURATION, ONNX, SAFETENSORS))
    return sum(path.stat().st_size for path in parts if path.is_file())


def time_interleaved(
    answer: Mapping[str, Callable[[Sequence[T]], object]], examples: Sequence[T], rounds: int
) -> dict[int, dict[str, NDArray[np.float64]]]:
    """Size of a batch → model → milliseconds [R] of each of its calls, `rounds` with one example and a third as many with more.

    In each round all models answer the same examples, in an order that turns, so that a busy neighbour slows all of them
    alike.
    """
    return {size: _in_turns(answer, examples, size, _calls(size, rounds)) for size in BATCHES}


def timed_examples(rounds: int) -> int:
    """Examples that each model answers in `rounds` of `in_turns`, its first calls aside."""
    return sum(size * _calls(size, rounds) for size in BATCHES)


def _calls(size: int, rounds: int) -> int:
    """With a batch of `size`."""
    return rounds if size == 1 else max(1, rounds // 3)


def _in_turns(
    answer: Mapping[str, Callable[[Sequence[T]], object]], examples: Sequence[T], size: int, rounds: int
) -> dict[str, NDArray[np.float64]]:
    import numpy as np

    batches = [[examples[(start * size + line) % len(examples)] for line in range(size)] for start in range(rounds)]
    for call in answer.values():  # the first calls allocate
        call(batches[0])
        call(batches[-1])
    taken: dict[str, list[float]] = {name: [] for name in answer}
    for turn, batch in enumerate(batches):
        for name in list(answer) if turn % 2 == 0 else list(answer)[::-1]:
            started = time.perf_counter()
            answer[name](batch)
            taken[name].append((time.perf_counter() - started) * 1000)
    return {name: np.asarray(values) for name, values in taken.items()}
