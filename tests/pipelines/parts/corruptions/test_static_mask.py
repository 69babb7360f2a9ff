"""Static masks: at most ten different ones of a text, whatever row it is read in, drawn as dynamic ones are."""

from __future__ import annotations

import numpy as np
from scipy.stats import chisquare, kstest

from pipelines.parts.corruptions import Arrays
from pipelines.parts.corruptions.static_mask import CONTEXT, StaticMask, _uniform, text_hashes
from pipelines.vocabulary import Field
from tests.pipelines.parts.corruptions.rows import MASK, plain, token_ids


def masks(batch: Arrays, seed: int, copies: int = 10) -> Arrays:
    return StaticMask(copies=copies).apply(batch, token_ids(200), np.random.default_rng(seed))


def test_a_row_has_one_mask_in_each_copy() -> None:
    row = plain(1, 66, size=200)
    read = {masks(row, seed)[Field.INPUT_IDS].tobytes() for seed in range(200)}
    assert len(read) == 10, "ten copies, each with masks and replacements of its own"
    assert len({masks(row, seed, copies=1)[Field.INPUT_IDS].tobytes() for seed in range(20)}) == 1


def test_what_is_drawn_for_a_token_does_not_depend_on_where_its_row_begins() -> None:
    text = np.random.default_rng(0).integers(5, 200, size=80)
    first, second = text[None, :60], text[None, 13:73]
    copy = np.array([3])
    shared = text_hashes(first, copy)[0, 13 + CONTEXT :]
    assert np.array_equal(shared, text_hashes(second, copy)[0, CONTEXT : CONTEXT + len(shared)])
    assert not np.array_equal(shared, text_hashes(first, np.array([4]))[0, 13 + CONTEXT :])


def test_its_draws_are_uniform_and_its_shares_those_of_bert() -> None:
    batch = plain(600, 66, size=200)
    draws = _uniform(text_hashes(batch[Field.INPUT_IDS][:, CONTEXT:-1], np.arange(600) % 10)).ravel()
    assert kstest(draws, "uniform").pvalue > 1e-3
    result = masks(batch, 1)
    positions, labels = result[Field.MASKED_POSITIONS], result[Field.MASKED_LABELS]
    assert len(positions) == 600 * round(0.15 * 64)
    ids = result[Field.INPUT_IDS].ravel()[positions]
    masked, kept = int((ids == MASK).sum()), int((ids == labels).sum())
    counts = np.array([masked, len(ids) - masked - kept, kept])
    same = 0.1 / 195  # a random token may be the original one
    assert chisquare(counts, len(ids) * np.array([0.8, 0.1 - same, 0.1 + same])).pvalue > 1e-3
    columns = np.bincount(positions % 66, minlength=66)[1:-1]
    assert chisquare(columns[CONTEXT:]).pvalue > 1e-3, "every position is as likely"
