"""Windows around words, frequent words left out, words drawn from the noise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from pipelines.errors import DataError
from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.context_windows import ContextWindows
from pipelines.parts.corruptions.counting import TokenCounts
from pipelines.parts.corruptions.negative_samples import NegativeSamples, _alias
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import SIZE, SPECIAL, batches, plain, token_ids


@given(batch=batches(), window=st.integers(1, 6), seed=st.integers(0, 2**32))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_windows_hold_the_neighbours_in_the_row_and_the_document(batch: Arrays, window: int, seed: int) -> None:
    given = ContextWindows(window=window, threshold=0).apply(batch, token_ids(), np.random.default_rng(seed))
    ids, documents = batch[Field.INPUT_IDS], batch[Field.DOCUMENTS]
    found = zip(given[Field.CENTERS].tolist(), given[Field.CONTEXTS].tolist(), strict=True)
    for row in range(len(ids)):
        for document in np.unique(documents[row]):
            words = [w for w in ids[row][documents[row] == document].tolist() if w not in SPECIAL]
            for place, word in enumerate(words if len(words) > 1 else []):
                center, around = next(found)
                before = [w for w in around[:window] if w >= 0]
                after = [w for w in around[window:] if w >= 0]
                reach = max(len(before), len(after))
                assert center == word and 1 <= reach <= window
                assert before == words[max(0, place - reach) : place] and after == words[place + 1 : place + 1 + reach]
                assert around == [-1] * (window - len(before)) + before + after + [-1] * (window - len(after))
    assert next(found, None) is None


def test_the_reach_of_windows_is_uniform() -> None:
    given = ContextWindows(window=5, threshold=0).apply(plain(1, 20_000), token_ids(), np.random.default_rng(0))
    reach = (given[Field.CONTEXTS][5:-5] >= 0).sum(1)
    assert chisquare(np.bincount(reach, minlength=11)[2::2]).pvalue > 0.001 and (reach % 2 == 0).all()


def test_frequent_words_are_left_out_as_by_the_authors_program() -> None:
    """Share kept of each word against (√(f / (t · n)) + 1) · t · n / f, for its count f of n and t = 0.01."""
    words = np.asarray([50_000, 20_000, 5000, 1000, 300, 0])
    counts = np.concatenate([[9, 9, 9, 9, 9], words])
    ids = np.repeat(np.arange(11), counts)[None, :]
    batch = {Field.INPUT_IDS: ids, Field.DOCUMENTS: np.zeros_like(ids)}
    tokens = TokenIds(11, 4, SPECIAL, counts=counts)
    given = ContextWindows(threshold=0.01).apply(batch, tokens, np.random.default_rng(1))
    kept = np.bincount(given[Field.CENTERS], minlength=11)[5:-1] / words[:-1]
    limit = 0.01 * words.sum()
    expected = np.minimum((np.sqrt(words[:-1] / limit) + 1) * limit / words[:-1], 1)
    error = np.sqrt(expected * (1 - expected) / words[:-1])
    assert np.all(np.abs(kept - expected) <= 4 * error + 1e-12) and expected[0] < 0.2 and expected[-1] == 1


@pytest.mark.parametrize("power", [0.75, 0.0, 1.0])
def test_negatives_have_the_unigram_distribution_raised_to_a_power(power: float) -> None:
    tokens = token_ids()
    given = NegativeSamples(samples=50, power=power).apply(
        {Field.CENTERS: np.zeros(4000, dtype=np.int64)}, tokens, np.random.default_rng(2)
    )
    assert given[Field.NEGATIVES].shape == (4000, 50) and given[Field.NEGATIVES].dtype == np.int64
    assert tokens.counts is not None
    weights = tokens.counts[5:].astype(np.float64) ** power
    seen = np.bincount(given[Field.NEGATIVES].ravel(), minlength=SIZE)
    assert not seen[:5].any(), "a special token was drawn"
    assert chisquare(seen[5:], weights / weights.sum() * seen.sum()).pvalue > 0.001


@given(counts=st.lists(st.sampled_from([0, 1, 2, 3, 7, 1000, 10**9]), min_size=6, max_size=60))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_the_table_that_negatives_are_drawn_from_is_exact(counts: list[int]) -> None:
    array = np.asarray(counts)
    weights = np.where(np.arange(len(array)) < 5, 0, np.where(array > 0, array**0.75, 0))
    if not weights.any():
        with pytest.raises(DataError, match="no words to draw"):
            _alias(TokenCounts(array), SPECIAL, 0.75)
        return
    share, other = _alias(TokenCounts(array), SPECIAL, 0.75)
    drawn = share + np.bincount(other, weights=1 - share, minlength=len(array))
    assert drawn / len(array) == pytest.approx(weights / weights.sum(), abs=1e-12)
    assert not drawn[weights == 0].any()


def test_a_stage_that_did_not_count_is_told_so() -> None:
    with pytest.raises(ValueError, match="TokenIds.counts is required"):
        ContextWindows().apply(plain(1, 8), TokenIds(SIZE, -1, SPECIAL), np.random.default_rng(0))
