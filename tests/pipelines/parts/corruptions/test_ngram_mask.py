"""N-grams of words: whole words, adjacent ones, in the frequencies of the recipe."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from scipy.stats import chisquare

from pipelines.parts.corruptions import Arrays
from pipelines.parts.corruptions.ngram_mask import NgramMask
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import batches, plain, token_ids, words_of


@given(batch=batches(), seed=st.integers(0, 2**32))
@settings(max_examples=40, deadline=None, derandomize=True)
def test_words_are_selected_whole(batch: Arrays, seed: int) -> None:
    result = NgramMask(lengths=(4, 3, 2, 1)).apply(batch, token_ids(), np.random.default_rng(seed))
    chosen = set(result[Field.MASKED_POSITIONS].tolist())
    for words in words_of(batch):
        assert all(chosen.issuperset(word) or chosen.isdisjoint(word) for word in words)
        assert not words or any(chosen.issuperset(word) for word in words), "a row that teaches nothing"


def test_lengths_have_the_frequencies_of_the_recipe() -> None:
    """Of runs of selected tokens between unselected ones, where so few are selected that two rarely touch."""
    part = NgramMask(lengths=(40, 30, 20, 10), rate=0.02)
    batch = plain(1500, 202, size=200)
    result = part.apply(batch, token_ids(200), np.random.default_rng(0))
    positions = result[Field.MASKED_POSITIONS]
    first = np.flatnonzero(np.diff(positions, prepend=-2) != 1)
    lengths = np.diff(first, append=len(positions))
    # the budget is four tokens: the first n-gram drawn always fits
    rows = positions[first] // 202
    single = np.bincount(rows, minlength=1500)[rows] == 1
    assert set(lengths.tolist()) == {1, 2, 3, 4} and single.any()
    assert (np.bincount(positions // 202, minlength=1500) == 4).mean() > 0.9, "the rate is reached"
    begins = part._begins(np.array([0]), 40000, np.random.default_rng(1))
    sizes = np.diff(np.flatnonzero(begins))
    assert chisquare(np.bincount(sizes)[1:], len(sizes) * np.array([0.4, 0.3, 0.2, 0.1])).pvalue > 1e-3


@pytest.mark.parametrize("lengths", [(), (0, 0), (-1, 2), (float("inf"),)])
def test_frequencies_that_are_none_are_refused(lengths: tuple[float, ...]) -> None:
    with pytest.raises(ValidationError, match="lengths"):
        NgramMask(lengths=lengths)
