"""Each word and the words around it (Mikolov et al. 2013a, §3; frequent words are left out: Mikolov et al. 2013b, §2.3)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.counting import Counts
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.vocabulary import Field


class ContextWindows(Corruption, name="context_windows"):
    """List every word as the centre of a window, with its neighbours in the same row of the same document.

    As in the authors' program, words are left out before windows are laid, so windows reach further over frequent words;
    and each window's reach is drawn from 1 … `window`, so near words count more. Special tokens are no words. A word
    without a neighbour is no centre.
    """

    paper = "arXiv:1310.4546"
    needs = frozenset({Field.INPUT_IDS, Field.DOCUMENTS})
    provides = frozenset({Field.CENTERS, Field.CONTEXTS})

    window: int = Option(5, ge=1)
    """Words on each side of the centre, at most."""
    threshold: float = Option(1e-3, ge=0)
    """Share of the text from which on a word is frequent: one with share f stays with probability √(t/f) + t/f; 0 keeps
    every word."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        """`batch` with CENTERS [N] and CONTEXTS [N, 2 · window], the words before the centre first, nearest in the middle."""
        ids = batch[Field.INPUT_IDS]
        stays = is_ordinary(ids, tokens)
        if self.threshold:
            keep = _keep(Counts.of(tokens), tokens.special, self.threshold)
            stays &= random.random(ids.shape, dtype=np.float32) < keep[ids]
        words = ids[stays]
        row = np.nonzero(stays)[0]
        documents = batch[Field.DOCUMENTS][stays]
        total = len(words)
        # windows end where a row or a document does
        begins = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(documents, prepend=-1) != 0))
        sizes = np.diff(begins, append=total)
        place = np.arange(total) - np.repeat(begins, sizes)
        reach = random.integers(1, self.window + 1, size=total)
        before = np.minimum(reach, place)
        after = np.minimum(reach, np.repeat(sizes, sizes) - 1 - place)

        around = np.empty((total, 2 * self.window), dtype=np.int64)
        beyond = np.full(self.window, -1, dtype=np.int64)
        padded = np.concatenate([beyond, words, beyond])
        for distance in range(1, self.window + 1):
            left = padded[self.window - distance : self.window - distance + total]
            right = padded[self.window + distance : self.window + distance + total]
            around[:, self.window - distance] = np.where(before >= distance, left, -1)
            around[:, self.window + distance - 1] = np.where(after >= distance, right, -1)
        some = before + after > 0
        return {**batch, Field.CENTERS: words[some], Field.CONTEXTS: around[some]}


@lru_cache(maxsize=4)
def _keep(counts: Counts, special: tuple[int, ...], threshold: float) -> NDArray[np.float32]:
    """float32 [size]: the probability with which each word stays."""
    words = counts.ordinary(special)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = threshold * words.sum() / words
        return np.where(words > 0, np.sqrt(share) + share, 1).astype(np.float32)
