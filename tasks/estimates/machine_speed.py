"""How fast this machine is for what we do, measured in a fifth of a second."""

from __future__ import annotations

import time
from functools import cache
from statistics import median

REFERENCE_SECONDS = 0.0173
"""What a piece takes on one processor of the machine that `tasks.estimates.estimates` has its seconds from."""
PIECES = 9


@cache
def slowness() -> float:
    """How many times as long one processor takes here as there: the median of some pieces. Counted in processor time, since what
    else the machine does at this moment says little of the next hour."""
    return median(_seconds() for _ in range(PIECES)) / REFERENCE_SECONDS


def _seconds() -> float:
    """A loop of Python and arithmetic on small arrays: what a training step of a small network has beside its products."""
    import numpy as np

    values = np.full(40_000, 0.5, dtype=np.float32)  # no products: a library would take all processors for them
    begun = time.thread_time()
    total = 0
    for number in range(480_000):
        total += number & 7
    for _ in range(64):
        values = np.tanh(values * 0.5 + 0.25)
    return time.thread_time() - begun
