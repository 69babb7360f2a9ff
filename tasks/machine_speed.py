"""How fast this machine is for what we do, measured in a tenth of a second, with whatever else it does meanwhile."""

from __future__ import annotations

import time
from functools import cache
from statistics import median

REFERENCE_SECONDS = 0.0192
"""What a piece takes on one processor of the machine that `tasks.estimates` has its seconds from."""
PIECES = 9


@cache
def slowness() -> float:
    """How many times as long one processor takes here as there, where nothing else runs: the median of some pieces."""
    return median(_seconds() for _ in range(PIECES)) / REFERENCE_SECONDS


def _seconds() -> float:
    """A loop of Python and products of small matrices: what a training step of a small network is made of."""
    import numpy as np

    matrix = np.full((192, 192), 0.5, dtype=np.float32)
    begun = time.perf_counter()
    total = 0
    for number in range(480_000):
        total += number & 7
    for _ in range(32):
        matrix = np.tanh(matrix @ matrix)
    return time.perf_counter() - begun
