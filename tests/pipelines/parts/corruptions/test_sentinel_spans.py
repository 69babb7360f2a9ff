"""Spans taken out: nothing is lost, and how many and how long is as in the paper's code."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from transformers import PreTrainedTokenizerFast

from pipelines.errors import RecipeError
from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.sentinel_spans import SentinelSpans
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import END, SENTINELS, batches, plain, token_ids
from tests.small_corpus import documents


def pieces(row: list[int], sentinels: tuple[int, ...]) -> list[list[int]]:
    """What stands between the sentinels of a row, which come in the order of use."""
    found: list[list[int]] = [[]]
    for token in row:
        if token == (sentinels[len(found) - 1] if len(found) <= len(sentinels) else None):
            found.append([])
        else:
            found[-1].append(token)
    return found


def rebuilt(given: Arrays, sentinels: tuple[int, ...]) -> list[list[int]]:
    """The rows before: text and spans in turn. The target's closing token is left out."""
    rows = []
    for inputs, target in zip(given[Field.INPUT_IDS].tolist(), given[Field.TARGET_IDS].tolist(), strict=True):
        text, spans = pieces(inputs, sentinels), pieces(target[:-1], sentinels)
        assert not spans[0] and len(text) == len(spans) and all(text) and all(spans[1:])
        rows.append([token for span, left in zip(spans, text, strict=True) for token in span + left])
    return rows


@given(
    batch=batches(shortest=3),
    density=st.sampled_from([0.01, 0.15, 0.5, 0.95]),
    mean=st.sampled_from([1.0, 3.0, 20.0]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_input_and_target_between_them_hold_the_row(batch: Arrays, density: float, mean: float, seed: int) -> None:
    part = SentinelSpans(density=density, mean_length=mean)
    given = part.apply(batch, token_ids(), np.random.default_rng(seed))
    assert rebuilt(given, SENTINELS) == batch[Field.INPUT_IDS].tolist()
    assert np.array_equal(given[Field.INPUT_IDS][:, -1], batch[Field.INPUT_IDS][:, -1])
    assert (given[Field.TARGET_IDS][:, -1] == END).all()
    # the counts of random_spans_noise_mask, functions of the length alone; fewer where spans would touch
    length = batch[Field.INPUT_IDS].shape[1] - 1
    taken = min(max(int(np.round(length * density)), 1), length - 1)
    spans = min(max(int(np.round(taken / mean)), 1), length - taken)
    assert given[Field.TARGET_IDS].shape[1] == taken + spans + 1
    assert given[Field.INPUT_IDS].shape[1] == length - taken + spans + 1
    assert not given.keys() & part.replaces


def test_the_sizes_are_those_of_the_paper_at_512_tokens() -> None:
    """§3.1.4 and the helper of the paper's code: 568 tokens become 512, and a target of 114, both with their ends."""
    tokens = TokenIds(1000, -1, (), end=1, sentinels=tuple(range(999, 899, -1)))
    given = SentinelSpans().apply({Field.INPUT_IDS: np.full((2, 569), 7)}, tokens, np.random.default_rng(0))
    assert given[Field.INPUT_IDS].shape == (2, 512) and given[Field.TARGET_IDS].shape == (2, 114)


def test_all_ways_of_cutting_are_equally_likely() -> None:
    """Five tokens of text and four of spans, two pieces each: 4 · 3 ways."""
    part = SentinelSpans(density=4 / 9, mean_length=2)
    given = part.apply(plain(6000, 10, size=10), token_ids(), np.random.default_rng(1))
    ways = Counter(
        (tuple(map(len, pieces(i, SENTINELS))), tuple(map(len, pieces(t, SENTINELS))))
        for i, t in zip(given[Field.INPUT_IDS].tolist(), given[Field.TARGET_IDS].tolist(), strict=True)
    )
    assert len(ways) == 12 and chisquare([*ways.values()]).pvalue > 0.001


def test_real_text_is_cut_as_the_paper_shows(tokenizer: PreTrainedTokenizerFast) -> None:
    encoded = tokenizer(documents("json")[:16], truncation=True, max_length=48)["input_ids"]
    rows = np.asarray([row for row in encoded if len(row) == 48])
    sentinels = tuple(range(len(tokenizer), len(tokenizer) + 10))
    tokens = TokenIds(
        len(tokenizer) + 10, tokenizer.mask_token_id, sentinels, end=tokenizer.sep_token_id, sentinels=sentinels
    )
    given = SentinelSpans().apply({Field.INPUT_IDS: rows}, tokens, np.random.default_rng(2))
    assert len(rows) > 3 and rebuilt(given, sentinels) == rows.tolist()
    for inputs, target in zip(given[Field.INPUT_IDS].tolist(), given[Field.TARGET_IDS].tolist(), strict=True):
        assert [token for token in inputs if token in sentinels] == [token for token in target if token in sentinels]
        assert not any(a and b for a, b in zip(*[[t in sentinels for t in inputs[k:]] for k in (0, 1)], strict=False))
        assert [kind for kind, _ in groupby(token in sentinels for token in target)] == [True, False] * 2


def test_rows_that_cannot_be_cut_are_refused() -> None:
    part, random = SentinelSpans(), np.random.default_rng(0)
    with pytest.raises(RecipeError, match="a row of 2 tokens is too short to remove a span"):
        part.apply(plain(1, 2, size=10), token_ids(), random)
    with pytest.raises(RecipeError, match="a row of 801 tokens has 40 spans, and the tokenizer has 30 sentinels"):
        part.apply(plain(1, 801, size=10), token_ids(), random)
    assert Corruption.model_validate("sentinel_spans") == part
