"""Lengths of texts in bins, each √2 times as wide as the one before: the same bins for every table and version."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

EDGES = np.unique(np.rint(2.0 ** (np.arange(2, 64) / 2)).astype(np.int64))
"""Characters at which the bins after the first begin; whole numbers, so that no rounding moves a text."""


def length_bins(characters: NDArray[np.integer]) -> NDArray[np.int16]:
    """int16 [N]: the number of the bin of each length."""
    return np.searchsorted(EDGES, characters, side="right").astype(np.int16)


def bin_begins(number: int) -> int:
    """The smallest length, in characters, in bin `number`."""
    return int(EDGES[number - 1]) if number else 0
