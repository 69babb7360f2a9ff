"""Shuffled trigrams: which tokens move, that their old order is asked for, and that masked tokens stay as they are."""

from __future__ import annotations

import numpy as np
import pytest
from pydantic import ValidationError

from pipelines.parts.corruptions.shuffled_trigrams import ShuffledTrigrams
from pipelines.parts.corruptions.token_mask import TokenMask
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import plain, token_ids

ROWS, LENGTH, SIZE = 300, 62, 2000


def distinct() -> dict[Field, np.ndarray]:
    """Rows of 60 ordinary tokens, no two of a row the same."""
    batch = plain(ROWS, LENGTH, size=SIZE)
    for row, ids in enumerate(batch[Field.INPUT_IDS]):
        ids[1:-1] = np.random.default_rng(row).choice(np.arange(5, SIZE), LENGTH - 2, replace=False)
    return batch


def test_each_row_has_its_share_of_trigrams_in_any_of_six_orders() -> None:
    batch, tokens = distinct(), token_ids(SIZE)
    result = ShuffledTrigrams(rate=0.05).apply(batch, tokens, np.random.default_rng(1))
    before, after = batch[Field.INPUT_IDS].ravel(), result[Field.INPUT_IDS].ravel()
    trigrams = result[Field.MASKED_POSITIONS].reshape(-1, 3)
    assert (np.diff(trigrams) == 1).all(), "three adjacent tokens each"
    assert np.array_equal(np.bincount(trigrams[:, 0] // LENGTH, minlength=ROWS), np.full(ROWS, 3))  # 0.05 · 60
    assert np.array_equal(result[Field.MASKED_LABELS], before[trigrams.ravel()])
    orders = np.array(
        [[before[at : at + 3].tolist().index(token) for token in after[at : at + 3]] for at, *_ in trigrams]
    )
    assert np.array_equal(np.sort(orders, axis=1), np.tile(np.arange(3), (len(trigrams), 1))), "no token is lost"
    _, counts = np.unique(orders, axis=0, return_counts=True)
    assert len(counts) == 6 and abs(counts / len(orders) - 1 / 6).max() < 0.05
    elsewhere = np.setdiff1d(np.arange(before.size), trigrams)
    assert np.array_equal(before[elsewhere], after[elsewhere])
    assert np.unique(trigrams[:, 0] % LENGTH % 3).size == 3, "a trigram may begin at any token"


def test_masked_tokens_are_in_no_trigram_and_stay_to_be_predicted() -> None:
    batch, tokens = distinct(), token_ids(SIZE)
    masked = TokenMask(rate=0.15).apply(batch, tokens, np.random.default_rng(1))
    result = ShuffledTrigrams(rate=0.1).apply(masked, tokens, np.random.default_rng(2))
    positions = result[Field.MASKED_POSITIONS]
    first = np.isin(positions, masked[Field.MASKED_POSITIONS])
    assert first.sum() == len(masked[Field.MASKED_POSITIONS]) and (~first).sum() > ROWS * 6
    assert (np.diff(positions) > 0).all()
    clean = batch[Field.INPUT_IDS].ravel()
    assert np.array_equal(result[Field.MASKED_LABELS], clean[positions]), "labels are those of the text"
    hidden = positions[first]
    assert np.array_equal(result[Field.INPUT_IDS].ravel()[hidden], masked[Field.INPUT_IDS].ravel()[hidden])


def test_a_row_without_three_free_tokens_keeps_its_order() -> None:
    batch, tokens = plain(4, 4), token_ids()
    result = ShuffledTrigrams().apply(batch, tokens, np.random.default_rng(0))
    assert np.array_equal(result[Field.INPUT_IDS], batch[Field.INPUT_IDS]) and not result[Field.MASKED_POSITIONS].size


def test_more_trigrams_than_a_row_has_are_refused() -> None:
    with pytest.raises(ValidationError, match="rate"):
        ShuffledTrigrams(rate=0.5)
