"""Words that are not there, to be told from those that are (Mikolov et al. 2013, §2.2)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.errors import DataError
from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.counting import Counts
from pipelines.vocabulary import Field


class NegativeSamples(Corruption, name="negative_samples"):
    """Draw words for each centre from the unigram distribution raised to a power; special tokens are never drawn.

    A draw may be a word of the window, as in the paper's equation 4; an objective may leave such a draw out.
    """

    paper = "arXiv:1310.4546"
    needs = frozenset({Field.CENTERS})
    provides = frozenset({Field.NEGATIVES})

    samples: int = Option(5, ge=1)
    """Words drawn for each centre: 5–20 for small texts, 2–5 for large ones."""
    power: float = Option(0.75, ge=0)
    """Exponent of the counts: 1 draws words as often as they stand in the text, 0 all equally often."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        share, other = _alias(Counts.of(tokens), tokens.special, self.power)
        spot = random.random((len(batch[Field.CENTERS]), self.samples)) * len(share)
        word = spot.astype(np.int64)
        spot -= word
        return {**batch, Field.NEGATIVES: np.where(spot < share[word], word, other[word])}


@lru_cache(maxsize=4)
def _alias(counts: Counts, special: tuple[int, ...], power: float) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """float64 [size] and int64 [size]: each word's share of its own cell, and the word that fills the rest (Walker 1977)."""
    words = counts.ordinary(special)
    weights = np.where(words > 0, words**power, 0)
    if not weights.sum():
        raise DataError("negative_samples: the stage's text holds no word to draw; give it a text with words")
    share = (weights * (len(weights) / weights.sum())).tolist()
    other = list(range(len(share)))
    small = [word for word, value in enumerate(share) if value < 1]
    large = [word for word, value in enumerate(share) if value >= 1]
    while small and large:
        word, giver = small.pop(), large[-1]
        other[word] = giver
        share[giver] -= 1 - share[word]
        if share[giver] < 1:
            small.append(large.pop())
    # what is left is full but for rounding
    for word in small + large:
        share[word] = 1.0
    return np.asarray(share), np.asarray(other, dtype=np.int64)
