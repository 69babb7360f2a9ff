"""Masking of whole words (Cui et al. 2019, §2.1; the later release of Devlin et al. 2018), drawn anew at every reading."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import Masking, beginnings, is_ordinary
from pipelines.vocabulary import Field


class WholeWordMask(Masking, name="whole_word_mask"):
    """Choose words, in random order, until a share of each row's tokens is to be predicted; a word is chosen or it is not.

    A word that would exceed round(rate · ordinary tokens) is passed over for the next that fits, as in BERT's code. Where
    none fits, the first word drawn is chosen, so that every row with an ordinary token teaches something. The fate of
    each token of a word is drawn by itself, as in BERT's code.
    """

    paper = "arXiv:1906.08101"
    needs = frozenset({Field.INPUT_IDS, Field.WORD_STARTS})

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean = batch[Field.INPUT_IDS]
        ordinary = is_ordinary(clean, tokens)
        starts = beginnings(batch, ordinary)
        word = np.cumsum(starts) - 1  # of each token; one that is not ordinary has no say below
        owner = np.flatnonzero(starts) // clean.shape[1]
        lengths = np.bincount(word[ordinary.ravel()], minlength=len(owner))
        order = np.argsort(owner + random.random(len(owner)))
        chosen = np.zeros(len(owner), dtype=np.bool_)
        chosen[order] = first_that_fit(lengths[order], owner[order], self.budget(ordinary))
        positions = np.flatnonzero(ordinary.ravel())
        return self.hide(batch, positions[chosen[word[positions]]], tokens, random)


def first_that_fit(
    lengths: NDArray[np.int64], owner: NDArray[np.int64], budget: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Bool [W]: the words of each row that are chosen when each is taken in turn if it still fits the row's budget.

    `lengths` [W] are tokens, `owner` [W] the row of each word, ascending; `budget` is tokens for each row. The first word
    of a row is taken where none fits.
    """
    chosen = np.zeros(len(owner), dtype=np.bool_)
    left = budget.copy()
    waiting = np.flatnonzero(lengths <= left[owner])
    while len(waiting):
        rows, sizes = owner[waiting], lengths[waiting]
        total = np.cumsum(sizes)
        first = np.flatnonzero(np.diff(rows, prepend=-1))
        before = np.zeros(len(budget), dtype=np.int64)
        before[rows[first]] = total[first] - sizes[first]
        # all up to the first that does not fit are taken at once; it is passed over, and so is all that is longer
        fits = total - before[rows] <= left[rows]
        chosen[waiting[fits]] = True
        left -= np.bincount(rows[fits], weights=sizes[fits], minlength=len(budget)).astype(np.int64)
        waiting = waiting[~fits & (sizes <= left[rows])]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    chosen[first] |= left[owner[first]] == budget[owner[first]]
    return chosen
