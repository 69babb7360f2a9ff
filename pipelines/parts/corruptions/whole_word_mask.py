"""Masking of whole words (Cui et al. 2019, §2.1; the later release of Devlin et al. 2018), drawn anew in every
epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import Masking, is_ordinary, word_beginnings
from pipelines.vocabulary import Field


class WholeWordMask(Masking, name="whole_word_mask"):
    """Select whole words, in random order, until a share of each row's tokens is to be predicted.

    A word that would exceed round(rate · ordinary tokens) is skipped for the next that fits, as in BERT's code. If none
    fits, the first word drawn is selected, so that every row with an ordinary token contributes to the loss. Whether a
    token of a word is masked, randomised or kept is drawn for each token, as in BERT's code.
    """

    paper = "arXiv:1906.08101"
    needs = frozenset({Field.INPUT_IDS, Field.WORD_STARTS})

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean = batch[Field.INPUT_IDS]
        ordinary = is_ordinary(clean, tokens)
        starts = word_beginnings(batch, ordinary)
        word = np.cumsum(starts) - 1  # of each token; entries of other than ordinary tokens are not used
        owner = np.flatnonzero(starts) // clean.shape[1]
        lengths = np.bincount(word[ordinary.ravel()], minlength=len(owner))
        order = np.argsort(owner + random.random(len(owner)))
        chosen = np.zeros(len(owner), dtype=np.bool_)
        chosen[order] = first_that_fit(lengths[order], owner[order], self.budget(ordinary))
        positions = np.flatnonzero(ordinary.ravel())
        return self.mask_positions(batch, positions[chosen[word[positions]]], tokens, random)


def first_that_fit(
    lengths: NDArray[np.int64], owner: NDArray[np.int64], budget: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Bool [W]: the words of each row that are selected when each is taken in turn if it still fits the row's budget.

    `lengths` [W] is the number of tokens of each word, `owner` [W] its row, ascending, `budget` [B] the number of
    tokens for each row. If no word of a row fits, its first one is taken.
    """
    chosen = np.zeros(len(owner), dtype=np.bool_)
    left = budget.copy()
    remaining = np.flatnonzero(lengths <= left[owner])
    while len(remaining):
        rows, sizes = owner[remaining], lengths[remaining]
        total = np.cumsum(sizes)
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        before = np.zeros(len(budget), dtype=np.int64)
        before[rows[first]] = total[first] - sizes[first]
        # take all words up to the first that does not fit at once; skip it, and all longer ones
        fits = total - before[rows] <= left[rows]
        chosen[remaining[fits]] = True
        left -= np.bincount(rows[fits], weights=sizes[fits], minlength=len(budget)).astype(np.int64)
        remaining = remaining[~fits & (sizes <= left[rows])]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    chosen[first] |= left[owner[first]] == budget[owner[first]]
    return chosen
