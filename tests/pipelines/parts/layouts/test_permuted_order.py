"""An order that is never written down is still an order: each element once, each place as likely as any other."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from pipelines.parts.layouts.permuted_order import PermutedOrder


def whole(key: tuple[int, ...], count: int) -> list[int]:
    result: list[int] = PermutedOrder(key, count)[np.arange(count)].tolist()
    return result


def test_every_small_size_is_permuted() -> None:
    for count in range(1, 300):
        assert sorted(whole((count, 3), count)) == list(range(count)), count


@given(key=st.tuples(st.integers(0, 2**40), st.integers(0, 9)), count=st.integers(1, 70_000))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_any_size_is_permuted(key: tuple[int, int], count: int) -> None:
    assert np.array_equal(np.sort(PermutedOrder(key, count)[np.arange(count)]), np.arange(count))


@given(count=st.integers(2**20, 2**50), seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_of_a_large_size_each_element_is_found_by_itself(count: int, seed: int) -> None:
    order = PermutedOrder((seed,), count)
    places = np.unique(np.random.default_rng(seed).integers(0, count, 500))
    together = order[places]
    assert together.min() >= 0 and together.max() < count and len(np.unique(together)) == len(places)
    assert np.array_equal(np.concatenate([order[places[at : at + 1]] for at in range(0, 500, 25)]), together[::25][:20])


@pytest.mark.parametrize("count", [3, 7, 16])
def test_over_many_keys_every_element_stands_everywhere(count: int) -> None:
    orders = np.asarray([whole((key, 1), count) for key in range(1500)])
    for place in range(count):
        assert chisquare(np.bincount(orders[:, place], minlength=count)).pvalue > 1e-4


@pytest.mark.parametrize("count", [1000, 65_536, 100_003])
def test_neighbours_in_an_order_have_nothing_to_do_with_each_other(count: int) -> None:
    order = PermutedOrder((0, 6, 0), count)[np.arange(count)]
    steps = (order[1:] - order[:-1]) % count
    # uniform over all distances, and no run in the order it was written in
    assert chisquare(np.bincount(steps * 20 // count, minlength=20)).pvalue > 1e-4
    assert chisquare(np.bincount(order[: count // 2] * 20 // count, minlength=20)).pvalue > 1e-4
    assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 4 / np.sqrt(count)


def test_keys_differ() -> None:
    assert len({tuple(whole((seed, 6, epoch), 50)) for seed in range(5) for epoch in range(5)}) == 25
