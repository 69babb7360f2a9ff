"""Tokens that are words by themselves."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.corruptions import TokenIds
from pipelines.parts.corruptions.masking import is_ordinary

SPACES = "Ġ▁"
"""What tokenizers write for the space before a word."""


def word_tokens(tokens: TokenIds, letters: int) -> NDArray[np.bool_]:
    """Bool [size]: the ordinary tokens that consist of `letters` letters or more; all ordinary ones where the strings
    of tokens are not known."""
    ordinary = is_ordinary(np.arange(tokens.size), tokens)
    if tokens.texts:
        ordinary &= _of_letters(tokens.texts, letters, tokens.size)
    return ordinary


@lru_cache(maxsize=8)
def _of_letters(texts: tuple[str, ...], letters: int, size: int) -> NDArray[np.bool_]:
    table = np.zeros(size, dtype=np.bool_)
    for number, text in enumerate(texts):
        bare = text.lstrip(SPACES)
        table[number] = bare.isalpha() and len(bare) >= letters
    return table
