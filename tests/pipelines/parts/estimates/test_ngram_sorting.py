"""The order of n-grams, with keys that fit into one number with their indices, and with keys that do not."""

from __future__ import annotations

import numpy as np
import pytest

from pipelines.parts.estimates.ngram_counts import sorting_order


@pytest.mark.parametrize("least", [0, 2**61])
@pytest.mark.parametrize("largest", [1, 50, 2**40, 2**60, 2**62 - 2])
def test_keys_are_sorted_and_equal_ones_stay_in_order(least: int, largest: int) -> None:
    keys = np.random.default_rng(0).integers(0, largest, 3000, endpoint=True) + least
    np.testing.assert_array_equal(sorting_order(keys), np.argsort(keys, kind="stable"))


@pytest.mark.parametrize("keys", [[], [7]])
def test_few_keys(keys: list[int]) -> None:
    assert sorting_order(np.asarray(keys, dtype=np.int64)).tolist() == list(range(len(keys)))
