"""Words and their context windows (Mikolov et al. 2013a, §3), with subsampling of frequent words (Mikolov et al. 2013b,
§2.3)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.counting import TokenCounts
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.vocabulary import Field


class ContextWindows(Corruption, name="context_windows"):
    """Make every word the centre of a window of its neighbours in the same row and document.

    As in the authors' code, words are subsampled before windows are formed, so that windows reach further across
    frequent words; and the size of each window is drawn from 1 … `window`, so that near words count more. Special
    tokens are not words. A word without neighbours is not a centre.
    """

    paper = "arXiv:1310.4546"
    needs = frozenset({Field.INPUT_IDS, Field.DOCUMENTS})
    provides = frozenset({Field.CENTERS, Field.CONTEXTS})

    window: int = Option(5, ge=1)
    """Maximum number of words on each side of the centre."""
    threshold: float = Option(1e-3, ge=0)
    """Subsampling threshold t: a word with relative frequency f is kept with probability √(t/f) + t/f; 0 keeps all
    words."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        """`batch` with CENTERS [N] and CONTEXTS [N, 2 · window], words in text order around the centre."""
        ids = batch[Field.INPUT_IDS]
        kept = is_ordinary(ids, tokens)
        if self.threshold:
            keep = _keep_probabilities(TokenCounts.of(tokens), tokens.special, self.threshold)
            kept &= random.random(ids.shape, dtype=np.float32) < keep[ids]
        words = ids[kept]
        row = np.nonzero(kept)[0]
        documents = batch[Field.DOCUMENTS][kept]
        total = len(words)
        # windows end at the end of a row or document
        begins = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(documents, prepend=-1) != 0))
        sizes = np.diff(begins, append=total)
        position = np.arange(total) - np.repeat(begins, sizes)
        reach = random.integers(1, self.window + 1, size=total)
        before = np.minimum(reach, position)
        after = np.minimum(reach, np.repeat(sizes, sizes) - 1 - position)

        around = np.empty((total, 2 * self.window), dtype=np.int64)
        outside = np.full(self.window, -1, dtype=np.int64)
        padded = np.concatenate([outside, words, outside])
        for distance in range(1, self.window + 1):
            left = padded[self.window - distance : self.window - distance + total]
            right = padded[self.window + distance : self.window + distance + total]
            around[:, self.window - distance] = np.where(before >= distance, left, -1)
            around[:, self.window + distance - 1] = np.where(after >= distance, right, -1)
        has_context = before + after > 0
        return {**batch, Field.CENTERS: words[has_context], Field.CONTEXTS: around[has_context]}


@lru_cache(maxsize=4)
def _keep_probabilities(counts: TokenCounts, special: tuple[int, ...], threshold: float) -> NDArray[np.float32]:
    """float32 [size]: probability of keeping each word."""
    words = counts.ordinary(special)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = threshold * words.sum() / words
        return np.where(words > 0, np.sqrt(share) + share, 1).astype(np.float32)
