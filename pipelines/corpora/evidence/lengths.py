"""Histogram bins for text lengths, each √2 times as wide as the one before, the same for every table and version."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EDGES = np.unique(np.rint(2.0 ** (np.arange(2, 64) / 2)).astype(np.int64))
"""Lower edges of the bins after the first, in characters; integers, so that rounding cannot move a text."""


def length_bins(characters: NDArray[np.integer]) -> NDArray[np.int16]:
    """int16 [N]: index of the bin of each length."""
    return np.searchsorted(EDGES, characters, side="right").astype(np.int16)


def bin_begins(number: int) -> int:
    """Smallest length in bin `number`, in characters."""
    return int(EDGES[number - 1]) if number else 0
