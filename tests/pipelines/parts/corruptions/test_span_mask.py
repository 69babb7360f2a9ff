"""Spans: their lengths, their edges, the words they are made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from pipelines.parts.corruptions import Arrays
from pipelines.parts.corruptions.span_mask import SpanMask
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import MASK, batches, plain, token_ids, words_of


def test_span_lengths_are_those_of_the_paper() -> None:
    given = SpanMask().apply(plain(4, 40_000), token_ids(), np.random.default_rng(0))
    edges = np.unique(given[Field.SPAN_EDGES], axis=0)
    lengths = edges[:, 1] - edges[:, 0] - 1
    # 6,300 spans with a standard deviation of 2.7: three standard errors of the mean are 0.1
    assert lengths.mean() == pytest.approx(3.8, abs=0.1)
    shares = 0.8 ** np.arange(10)
    seen = np.bincount(lengths, minlength=11)[1:]
    assert len(seen) == 10 and chisquare(seen, shares / shares.sum() * seen.sum()).pvalue > 0.001


@given(batch=batches(), rate=st.sampled_from([0.01, 0.15, 0.3, 0.5]), worded=st.booleans(), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_spans_are_whole_words_between_visible_tokens(batch: Arrays, rate: float, worded: bool, seed: int) -> None:
    ids = batch[Field.INPUT_IDS]
    whole = {**batch, Field.WORD_STARTS: batch[Field.WORD_STARTS] if worded else np.ones_like(ids)}
    if not worded:
        batch = {name: value for name, value in batch.items() if name != Field.WORD_STARTS}
    given = SpanMask(rate=rate).apply(batch, token_ids(), np.random.default_rng(seed))
    positions, edges = given[Field.MASKED_POSITIONS], given[Field.SPAN_EDGES]
    length = ids.shape[1]
    chosen = set(positions.tolist())
    assert edges.shape == (len(positions), 2)
    for at, (before, after), offset in zip(positions, edges, given[Field.SPAN_OFFSETS], strict=True):
        assert before // length == at // length == after // length, "a span and its edges stand in one row"
        assert before not in chosen and after not in chosen and set(range(before + 1, after)) <= chosen
        assert at == before + 1 + offset
    for row, words in enumerate(words_of(whole)):
        # the row's first and last token are never in a span
        frame = {row * length, row * length + length - 1}
        inner = [word for word in ([at for at in word if at not in frame] for word in words) if word]
        budget = max(1, int(np.rint(rate * sum(map(len, inner)))))
        touched = [word for word in inner if chosen & set(word)]
        assert all(set(word) <= chosen for word in touched)
        assert bool(touched) == bool(inner)
        assert len(touched) == 1 or sum(map(len, touched)) <= budget
        if not worded and inner:
            assert len(touched) == budget, "the number of tokens is exact"


def test_a_span_has_one_fate() -> None:
    batch = plain(50, 128)
    given = SpanMask().apply(batch, token_ids(), np.random.default_rng(3))
    now = given[Field.INPUT_IDS].ravel()[given[Field.MASKED_POSITIONS]]
    spans = np.unique(given[Field.SPAN_EDGES][:, 0], return_inverse=True)[1]
    each = [np.flatnonzero(spans == span) for span in range(spans.max() + 1)]
    kept = [np.mean(now[span] == given[Field.MASKED_LABELS][span]) for span in each if len(span) > 4]
    masked = [np.mean(now[span] == MASK) for span in each]
    # a random token is the right one once in 35 times
    assert set(masked) == {0, 1} and all(share == 1 or share < 0.5 for share in kept)
    assert 0.03 < np.mean(np.asarray(kept) == 1) < 0.2, "a tenth of the spans stays as it is"


def test_all_placements_are_equally_likely() -> None:
    """Three of eight tokens: a span of two and one of one in either order (30 ways), or three of one (20 ways)."""
    given = SpanMask(rate=0.375, longest=2).apply(plain(20_000, 10), token_ids(), np.random.default_rng(4))
    masked = np.zeros((20_000, 10), dtype=np.int64)
    masked.ravel()[given[Field.MASKED_POSITIONS]] = 1
    patterns, seen = np.unique(masked @ (1 << np.arange(10)), return_counts=True)
    runs = np.asarray([bin(pattern & ~(pattern << 1)).count("1") for pattern in patterns.tolist()])
    for number, ways in ((2, 30), (3, 20)):
        assert (runs == number).sum() == ways and chisquare(seen[runs == number]).pvalue > 0.001
