"""Speed of this machine relative to the reference machine, measured in a fifth of a second."""

from __future__ import annotations

import time
from functools import cache
from statistics import median

REFERENCE_SECONDS = 0.0173
"""Duration of one repetition on one core of the reference machine of `tasks.estimates.duration`."""
REPETITIONS = 9


@cache
def slowness() -> float:
    """Time of one core here divided by that of the reference machine: the median of `REPETITIONS` measurements.

    Measured in processor time, because the machine's present load does not predict its load during the next hour.
    """
    return median(_seconds() for _ in range(REPETITIONS)) / REFERENCE_SECONDS


def _seconds() -> float:
    """Time a Python loop and arithmetic on small arrays, as in a training step of a small network outside matrix
    products."""
    import numpy as np

    values = np.full(40_000, 0.5, dtype=np.float32)  # no matrix products: a library would use all cores for them
    begun = time.thread_time()
    total = 0
    for number in range(480_000):
        total += number & 7
    for _ in range(64):
        values = np.tanh(values * 0.5 + 0.25)
    return time.thread_time() - begun
