"""MinHash signatures, and bands of them that near copies share (Broder 1997; Leskovec et al. 2020, chapter 3).

bands = Bands.for_threshold(0.8)                    # 18 bands of 7 values
found = signatures(*shingles(texts, Shingle("words", 5), shorter=True), bands.values)
bands.keys(found)                                   # [texts, 18]: near copies have one in common
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pipelines.corpora.duplicates.shingles import Ends, Hashes

VALUES = 128
"""At most so many values a signature: estimates of a Jaccard index of 0.8 then have a standard error of 0.036."""
RECALL = 0.98
"""Share of the pairs at the threshold that must have a band in common."""
SEED = 42

Signatures = NDArray[np.uint32]


@dataclass(frozen=True)
class Bands:
    """`bands` times `rows` values of a signature; two texts are compared when all rows of a band are equal."""

    bands: int
    rows: int
    threshold: float

    @classmethod
    def for_threshold(cls, threshold: float) -> Self:
        """The longest bands, and so the fewest comparisons, with which RECALL of the pairs at the threshold are found.

        A pair of Jaccard index J has a band in common with probability 1 - (1 - J^rows)^bands.
        """
        for rows in range(VALUES, 0, -1):
            bands = VALUES // rows
            if 1 - (1 - threshold**rows) ** bands >= RECALL:
                return cls(bands, rows, threshold)
        return cls(VALUES, 1, threshold)

    @property
    def values(self) -> int:
        """How many values a signature has."""
        return self.bands * self.rows

    @property
    def least(self) -> float:
        """The least estimate taken for a near copy: two standard errors below the threshold.

        At the threshold itself half of all pairs would be lost, were it asked of the estimate.
        """
        return self.threshold - 2 * math.sqrt(self.threshold * (1 - self.threshold) / self.values)

    def keys(self, found: Signatures) -> Hashes:
        """[texts, bands] what two texts share when all rows of a band are equal."""
        rows = found.reshape(len(found), self.bands, self.rows)
        keys = np.broadcast_to(np.arange(self.bands, dtype=np.uint64), rows.shape[:2])
        for row in range(self.rows):
            keys = (keys ^ rows[:, :, row]) * np.uint64(0x9E3779B97F4A7C15)
            keys = keys ^ (keys >> np.uint64(29))
        return keys


def signatures(hashes: Hashes, ends: Ends, values: int) -> Signatures:
    """[texts, values] the smallest of all shingles of a text under so many permutations.

    Of two texts, the share of equal values estimates the Jaccard index of their sets of shingles. What a text without
    shingles gets means nothing.
    """
    from rensa import RMinHash  # type: ignore[import-untyped]

    matrix = RMinHash.digest_matrix_from_flat_token_hashes(hashes, ends.astype(np.uint64), values, SEED)
    return np.array(matrix.to_rows(), np.uint32).reshape(len(ends) - 1, values)


def similarity(one: NDArray[np.unsignedinteger], other: NDArray[np.unsignedinteger]) -> NDArray[np.float64]:
    """The share of equal values, row by row."""
    return np.asarray(np.mean(one == other, axis=1))
