"""Negative sampling: words drawn from a noise distribution (Mikolov et al. 2013, §2.2)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.errors import DataError
from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.counting import TokenCounts
from pipelines.vocabulary import Field


class NegativeSamples(Corruption, name="negative_samples"):
    """Draw words for each centre from the unigram distribution raised to a power; special tokens are never drawn.

    A draw may be the centre or a word of its window, as in the paper's equation 4; a head may exclude such draws.
    """

    paper = "arXiv:1310.4546"
    needs = frozenset({Field.CENTERS})
    provides = frozenset({Field.NEGATIVES})

    samples: int = Option(5, ge=1)
    """Number of negatives for each centre: 5–20 for small corpora, 2–5 for large ones."""
    power: float = Option(0.75, ge=0)
    """Exponent of the counts: 1 draws words by frequency, 0 uniformly."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        share, other = _alias(TokenCounts.of(tokens), tokens.special, self.power)
        draw = random.random((len(batch[Field.CENTERS]), self.samples)) * len(share)
        word = draw.astype(np.int64)
        draw -= word
        return {**batch, Field.NEGATIVES: np.where(draw < share[word], word, other[word])}


@lru_cache(maxsize=4)
def _alias(
    counts: TokenCounts, special: tuple[int, ...], power: float
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Alias table (Walker 1977): float64 [size], each word's share of its own cell, and int64 [size], the word in the
    rest."""
    words = counts.ordinary(special)
    weights = np.where(words > 0, words**power, 0)
    if not weights.sum():
        raise DataError("negative_samples: the stage's text has no words to draw; give it a corpus with words")
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
    # the remaining cells are full up to rounding
    for word in small + large:
        share[word] = 1.0
    return np.asarray(share), np.asarray(other, dtype=np.int64)
