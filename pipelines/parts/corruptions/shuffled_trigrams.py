"""Word order: trigrams in random order, to be put right (Wang et al. 2019, StructBERT §2.2.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.vocabulary import Field

LENGTH = 3
"""Tokens of a shuffled subsequence: K of the paper, which 3 serves best."""


class ShuffledTrigrams(Corruption, name="shuffled_trigrams"):
    """Shuffle the tokens of some trigrams; the token that stood at each of their positions is to be predicted.

    Listed after a masking, trigrams are made of tokens which that has not selected, and both kinds of positions are
    predicted alike, each with the same weight in the loss. The trigrams of a row do not overlap; one of six orders is
    that of the text, as some of the masked tokens are unchanged. Channels stay where they are: they belong to the token
    to be predicted.
    """

    paper = "arXiv:1908.04577"
    provides = frozenset({Field.MASKED_POSITIONS, Field.MASKED_LABELS})
    may_read = frozenset({Field.MASKED_POSITIONS, Field.MASKED_LABELS})
    replaces = frozenset({Field.SPAN_EDGES, Field.SPAN_OFFSETS})

    rate: float = Option(0.05, gt=0, le=1 / LENGTH)
    """Number of trigrams for each ordinary token of a row."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        ids = batch[Field.INPUT_IDS]
        ordinary = is_ordinary(ids, tokens)
        masked = batch.get(Field.MASKED_POSITIONS, np.empty(0, dtype=np.int64))
        labels = batch.get(Field.MASKED_LABELS, np.empty(0, dtype=np.int64))
        free = ordinary.copy()
        free.ravel()[masked] = False
        shuffled = self._chosen(free, ordinary.sum(1), random)[:, None] + np.arange(LENGTH)
        corrupted = ids.ravel().copy()
        corrupted[shuffled] = random.permuted(corrupted[shuffled], axis=1)
        positions = np.concatenate([masked, shuffled.ravel()])
        originals = np.concatenate([labels, ids.ravel()[shuffled.ravel()]])
        order = np.argsort(positions)
        kept = {name: value for name, value in batch.items() if name not in self.replaces}
        return {
            **kept,
            Field.INPUT_IDS: corrupted.reshape(ids.shape),
            Field.MASKED_POSITIONS: positions[order],
            Field.MASKED_LABELS: originals[order],
        }

    def _chosen(
        self, free: NDArray[np.bool_], counts: NDArray[np.int64], random: np.random.Generator
    ) -> NDArray[np.int64]:
        """int64 [N]: flattened positions of the first tokens of the chosen trigrams, all of whose tokens are `free`
        [B, L]: round(rate · ordinary tokens) of each row, whose ordinary tokens are `counts` [B], or all there are.

        A row's trigrams begin at every third column after an offset drawn for it, so that none overlap.
        """
        whole = np.zeros_like(free)
        inside = free.shape[1] - LENGTH + 1
        if inside <= 0:
            return np.empty(0, dtype=np.int64)
        whole[:, :inside] = np.all([free[:, at : at + inside] for at in range(LENGTH)], axis=0)
        offsets = random.integers(LENGTH, size=(len(free), 1))
        whole &= (np.arange(free.shape[1]) - offsets) % LENGTH == 0
        # the highest draws of each row
        draws = np.where(whole, random.random(free.shape, dtype=np.float32), np.float32(-1))
        rank = np.argsort(np.argsort(-draws, axis=1), axis=1)
        chosen: NDArray[np.int64] = np.flatnonzero(whole & (rank < np.rint(self.rate * counts)[:, None]))
        return chosen
