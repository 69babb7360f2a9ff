"""Pseudo-words: two words written as one, to be told apart by their context (Lu et al. 2006, ACL P06-1058)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.errors import RecipeError
from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.channel_labels import IGNORED
from pipelines.parts.corruptions.word_tokens import word_tokens
from pipelines.vocabulary import Field


class PseudoWords(Corruption, name="pseudo_words"):
    """Write pairs of words as the first of each: an ambiguous word, whose sense is which of the two was there.

    Class 0 for the first word of a pair, 1 for the second; no class for other words. The words of a pair are next to
    each other in frequency, so that neither is the better guess. Both are to be predicted too (MASKED_POSITIONS), for
    masked LM on the same rows. Raises RecipeError where the vocabulary has no two words.
    """

    paper = "Lu et al. 2006, ACL P06-1058"
    provides = frozenset({Field.TAG_LABELS, Field.MASKED_POSITIONS, Field.MASKED_LABELS})
    replaces = frozenset({Field.SPAN_EDGES, Field.SPAN_OFFSETS})

    pairs: int = Option(500, ge=1)
    """Number of pairs, of the most frequent words."""
    letters: int = Option(4, ge=1)
    """Fewest letters of a word."""

    @property
    def classes(self) -> int:
        return 2

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        ids = batch[Field.INPUT_IDS]
        merged, sense = self._merged(tokens)
        labels = sense[ids]
        positions = np.flatnonzero(labels >= 0)
        kept = {name: value for name, value in batch.items() if name not in self.replaces}
        return {
            **kept,
            Field.INPUT_IDS: merged[ids],
            Field.TAG_LABELS: labels,
            Field.MASKED_POSITIONS: positions,
            Field.MASKED_LABELS: ids.ravel()[positions],
        }

    def _merged(self, tokens: TokenIds) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """int64 [size] each: the token that is written for each, and its class."""
        words = np.flatnonzero(word_tokens(tokens, self.letters))
        if tokens.counts is not None:
            words = words[tokens.counts[words] > 0]
            words = words[np.argsort(-tokens.counts[words], kind="stable")]
        pairs = words[: min(len(words) // 2, self.pairs) * 2].reshape(-1, 2)
        if not len(pairs):
            raise RecipeError(
                f"corruption pseudo_words: the text has no two tokens of {self.letters} letters or more; lower letters"
            )
        merged, sense = np.arange(tokens.size, dtype=np.int64), np.full(tokens.size, IGNORED, dtype=np.int64)
        merged[pairs[:, 1]] = pairs[:, 0]
        sense[pairs] = [0, 1]
        return merged, sense
