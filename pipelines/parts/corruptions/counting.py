"""Token counts as a hashable value, so that tables derived from them can be cached."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.corruptions import TokenIds


class TokenCounts:
    """Frequencies of the tokens in a stage's text; equal to another value if both have the same array object."""

    def __init__(self, array: NDArray[np.int64]) -> None:
        self.array = array

    @classmethod
    def of(cls, tokens: TokenIds) -> TokenCounts:
        """The counts of `tokens`. Raises ValueError if the stage has not counted tokens."""
        if tokens.counts is None:
            raise ValueError("this corruption draws words by frequency: TokenIds.counts is required")
        return cls(tokens.counts)

    def ordinary(self, special: tuple[int, ...]) -> NDArray[np.float64]:
        """float64 [size]: the counts, with 0 for special tokens."""
        counts = self.array.astype(np.float64)
        counts[[token for token in special if 0 <= token < len(counts)]] = 0
        return counts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TokenCounts) and self.array is other.array

    def __hash__(self) -> int:
        return id(self.array)
