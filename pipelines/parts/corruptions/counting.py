"""How often words stand in the text, as a value that what is made of it can be remembered by."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.corruptions import TokenIds


class Counts:
    """The counts of a stage's tokens, the same value as another when both hold the same array."""

    def __init__(self, array: NDArray[np.int64]) -> None:
        self.array = array

    @classmethod
    def of(cls, tokens: TokenIds) -> Counts:
        """Those of `tokens`. Raises ValueError when the stage did not count."""
        if tokens.counts is None:
            raise ValueError("this corruption draws words by how often they stand in the text: count them first")
        return cls(tokens.counts)

    def ordinary(self, special: tuple[int, ...]) -> NDArray[np.float64]:
        """float64 [size]: the counts, 0 for special tokens."""
        counts = self.array.astype(np.float64)
        counts[[token for token in special if 0 <= token < len(counts)]] = 0
        return counts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Counts) and self.array is other.array

    def __hash__(self) -> int:
        return id(self.array)
