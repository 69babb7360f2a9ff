"""Masking of n-grams of words (Lan et al. 2019, ALBERT §4.1; Cui et al. 2020, MacBERT §3.2), drawn anew in every
epoch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option
from pydantic import field_validator

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import Masking, is_ordinary, word_beginnings
from pipelines.parts.corruptions.whole_word_mask import first_that_fit
from pipelines.vocabulary import Field


class NgramMask(Masking, name="ngram_mask"):
    """Select n-grams of whole words, in random order, until a share of each row's tokens is to be predicted.

    A row is cut into n-grams of independent lengths; none crosses a special token. One that would exceed round(rate ·
    ordinary tokens) is skipped for the next that fits; if none fits, the first drawn is selected. Without word starts
    every token is a word. Whether a token is masked, randomised or kept is drawn for each token, as in BERT's code.
    """

    paper = "arXiv:1909.11942"
    may_read = frozenset({Field.WORD_STARTS})

    lengths: tuple[float, ...] = Option((6, 3, 2), min_length=1)
    """Relative frequencies of n-grams of 1, 2, … words; by default 1/n up to three, ALBERT's."""

    @field_validator("lengths")
    @classmethod
    def _frequencies(cls, lengths: tuple[float, ...]) -> tuple[float, ...]:
        if min(lengths) < 0 or not 0 < sum(lengths) < float("inf"):
            raise ValueError("lengths are frequencies of n-grams of 1, 2, … words: finite numbers from 0, not all 0")
        return lengths

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        positions, _ = self.selected(batch, tokens, random)
        return self.mask_positions(batch, positions, tokens, random)

    def selected(
        self, batch: Arrays, tokens: TokenIds, random: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """int64 [M] and [M]: flattened, ascending positions of the tokens to predict, and the word of each, as a number
        that ascends along the batch."""
        clean = batch[Field.INPUT_IDS]
        ordinary = is_ordinary(clean, tokens)
        starts = word_beginnings(batch, ordinary) if Field.WORD_STARTS in batch else ordinary
        word = np.cumsum(starts) - 1  # of each token; entries of other than ordinary tokens are not used
        first = np.flatnonzero(starts)
        owner = first // clean.shape[1]
        sizes = np.bincount(word[ordinary.ravel()], minlength=len(first))
        after_special = ~ordinary.ravel()[first - 1] | (first % clean.shape[1] == 0)
        begins = self._begins(np.flatnonzero(after_special), len(first), random)
        unit = np.cumsum(begins) - 1  # the n-gram of each word
        unit_sizes = np.bincount(unit, weights=sizes, minlength=int(begins.sum())).astype(np.int64)
        unit_owner = owner[begins]
        order = np.argsort(unit_owner + random.random(len(unit_owner)))
        chosen = np.zeros(len(unit_owner), dtype=np.bool_)
        chosen[order] = first_that_fit(unit_sizes[order], unit_owner[order], self.budget(ordinary))
        positions = np.flatnonzero(ordinary.ravel())
        positions = positions[chosen[unit][word[positions]]]
        return positions, word[positions]

    def _begins(self, runs: NDArray[np.int64], words: int, random: np.random.Generator) -> NDArray[np.bool_]:
        """Bool [W]: the words that begin an n-gram, of W words in contiguous runs that begin at the words `runs` [R].

        The n-grams of a run have independent lengths; its last one is cut by its end.
        """
        begins = np.zeros(words, dtype=np.bool_)
        begins[runs] = True
        run_sizes = np.diff(runs, append=words)
        thresholds = np.cumsum(self.lengths) / sum(self.lengths)
        draws = random.random((len(runs), int(run_sizes.max(initial=0))))
        ends = np.cumsum(1 + np.searchsorted(thresholds[:-1], draws, side="right"), axis=1)
        inside = ends < run_sizes[:, None]
        begins[(runs[:, None] + ends)[inside]] = True
        return begins
