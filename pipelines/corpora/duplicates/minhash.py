"""MinHash signatures and locality-sensitive hashing by bands (Broder 1997; Leskovec et al. 2020, chapter 3).

bands = Bands.for_threshold(0.8)                    # 18 bands of 7 values
values = signatures(*shingles(texts, Shingle("words", 5), shorter=True), bands.values)
bands.keys(values)                                  # [texts, 18]: near-duplicates have a key in common
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pipelines.corpora.duplicates.shingles import Ends, Hashes

VALUES = 128
"""Largest number of values in a signature: an estimated Jaccard index of 0.8 then has a standard error of 0.036."""
RECALL = 0.98
"""Share of the pairs at the threshold that must have at least one band in common."""
SEED = 42

Signatures = NDArray[np.uint32]


@dataclass(frozen=True)
class Bands:
    """Banding of a signature of `bands` · `rows` values; two texts are compared when all rows of a band are equal."""

    bands: int
    rows: int
    threshold: float

    @classmethod
    def for_threshold(cls, threshold: float) -> Self:
        """Longest bands, hence fewest comparisons, with which RECALL of the pairs at the threshold are compared.

        A pair of Jaccard index J has a band in common with probability 1 - (1 - J^rows)^bands.
        """
        for rows in range(VALUES, 0, -1):
            bands = VALUES // rows
            if 1 - (1 - threshold**rows) ** bands >= RECALL:
                return cls(bands, rows, threshold)
        return cls(VALUES, 1, threshold)

    @property
    def values(self) -> int:
        """Number of values in a signature."""
        return self.bands * self.rows

    @property
    def least(self) -> float:
        """Smallest estimate that counts as a near-duplicate: two standard errors below the threshold.

        With the threshold itself, half of the pairs whose index equals the threshold would be lost to estimation error.
        """
        return self.threshold - 2 * math.sqrt(self.threshold * (1 - self.threshold) / self.values)

    def keys(self, signatures: Signatures) -> Hashes:
        """[texts, bands] Key of each band; two texts share it when all rows of the band are equal."""
        rows = signatures.reshape(len(signatures), self.bands, self.rows)
        keys = np.broadcast_to(np.arange(self.bands, dtype=np.uint64), rows.shape[:2])
        for row in range(self.rows):
            keys = (keys ^ rows[:, :, row]) * np.uint64(0x9E3779B97F4A7C15)
            keys = keys ^ (keys >> np.uint64(29))
        return keys


def signatures(hashes: Hashes, ends: Ends, values: int) -> Signatures:
    """[texts, values] MinHash: the minimum over all shingles of a text under each permutation.

    The share of equal values of two texts estimates the Jaccard index of their sets of shingles. The values of a text
    without shingles are meaningless.
    """
    from rensa import RMinHash  # type: ignore[import-untyped]

    matrix = RMinHash.digest_matrix_from_flat_token_hashes(hashes, ends.astype(np.uint64), values, SEED)
    return np.array(matrix.to_rows(), np.uint32).reshape(len(ends) - 1, values)


def similarity(one: NDArray[np.unsignedinteger], other: NDArray[np.unsignedinteger]) -> NDArray[np.float64]:
    """[N] Share of equal values in each row: the estimated Jaccard index."""
    return np.asarray(np.mean(one == other, axis=1))
