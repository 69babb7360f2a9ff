"""One fragment masked: where it is, how long, what the decoder reads, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from pipelines.parts.corruptions import Arrays
from pipelines.parts.corruptions.masked_fragment import MaskedFragment
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import MASK, SPECIAL, batches, plain, token_ids


@given(
    batch=batches(),
    share=st.sampled_from([0.1, 0.5, 1.0]),
    tokens=st.sampled_from([None, 1, 7, 90]),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_the_target_is_one_run_of_the_row_with_k_ordinary_tokens(
    batch: Arrays, share: float, tokens: int | None, seed: int
) -> None:
    part = MaskedFragment(rate=share, tokens=tokens, mask=1, random=0)
    given = part.apply(batch, token_ids(), np.random.default_rng(seed))
    for row, target, inputs in zip(
        batch[Field.INPUT_IDS], given[Field.TARGET_IDS], given[Field.INPUT_IDS], strict=True
    ):
        ordinary = ~np.isin(row, SPECIAL)
        wanted = max(1, round(share * ordinary.sum())) if tokens is None else tokens
        inside = np.flatnonzero(target != -100)
        assert ordinary[inside].sum() == min(wanted, ordinary.sum())
        if not len(inside):
            continue
        assert np.array_equal(inside, np.arange(inside[0], inside[-1] + 1)), "one run"
        assert ordinary[inside[0]] and ordinary[inside[-1]]
        assert np.array_equal(target[inside], row[inside])
        assert (inputs[inside][ordinary[inside]] == MASK).all()
        outside = np.delete(np.arange(len(row)), inside)
        assert np.array_equal(inputs[outside], row[outside])


def test_every_place_is_equally_likely() -> None:
    given = MaskedFragment(tokens=4).apply(plain(9000, 12, size=30), token_ids(), np.random.default_rng(0))
    begins = (given[Field.TARGET_IDS] != -100).argmax(1)
    assert chisquare(np.bincount(begins, minlength=8)[1:8]).pvalue > 0.001 and begins.max() == 7


def test_the_shares_are_those_of_bert() -> None:
    batch = plain(4000, 22, size=30)
    given = MaskedFragment().apply(batch, token_ids(30), np.random.default_rng(1))
    chosen = given[Field.TARGET_IDS] != -100
    assert (chosen.sum(1) == 10).all()
    masked = (given[Field.INPUT_IDS] == MASK)[chosen].mean()
    kept = (given[Field.INPUT_IDS] == batch[Field.INPUT_IDS])[chosen].mean()
    assert masked == pytest.approx(0.8, abs=0.01) and kept == pytest.approx(0.1 + 0.1 / 25, abs=0.01)


def test_a_fragment_longer_than_the_rows_is_named() -> None:
    assert MaskedFragment(tokens=64).unfit_rows(64) is None and MaskedFragment().unfit_rows(2) is None
    assert MaskedFragment(tokens=65).unfit_rows(64) == (
        "a fragment of 65 tokens is longer than the rows of 64; lower tokens, or raise budget.length"
    )
