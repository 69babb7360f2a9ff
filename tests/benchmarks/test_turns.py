"""What turns say: ratios round by round, and how sure they are; and what a step's products are."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from benchmarks.harness.floor import Shape, flops
from benchmarks.harness.growth import exponent
from benchmarks.harness.plot import rungs_around, spaced
from benchmarks.harness.record import Point, Turn
from benchmarks.harness.turns import interval, ratio, take_turns


def turn(units: float, seconds: float) -> Turn:
    return Turn(units=units, seconds=seconds, cpu=seconds / 2)


def test_variants_take_turns_and_none_always_follows_the_same() -> None:
    seen: list[str] = []

    def one(name: str) -> Turn:
        seen.append(name)
        return turn(1, 1)

    turns = take_turns({name: partial(one, name) for name in "abc"}, rounds=3)
    assert "".join(seen) == "abccbaabc"
    assert all(len(taken) == 3 for taken in turns.values())


def test_a_machine_that_slows_down_moves_no_ratio() -> None:
    slower = [1.0, 3.0, 9.0]  # seconds of a round, for both
    ours, theirs = [turn(40, one) for one in slower], [turn(10, one) for one in slower]
    found = ratio("x", ours, theirs, "theirs")
    assert (found.value, found.low, found.high, found.cpu) == (4, 4, 4, 4)


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    held = []
    for _ in range(200):
        low, high = interval(list(random.normal(5, 1, 15)))
        assert low is not None and high is not None
        held.append(low <= 5 <= high)
    assert 0.88 <= np.mean(held) <= 1
    assert interval([3.0]) == (None, None)


def test_the_floor_counts_six_operations_a_weight_and_token() -> None:
    shape = Shape(layers=2, hidden=128, heads=2, inner=512, vocabulary=30_528, rows=32, length=128, predicted=0.15)
    body = 2 * (4 * 128**2 + 2 * 128 * 512)
    chosen = round(4096 * 0.15)
    attention = 2 * 2 * 128 * 128  # two products of [length, hidden] a layer and token
    expected = 6 * (4096 * (body + attention) + chosen * (128**2 + 128 * 30_528))
    assert flops(shape) == pytest.approx(expected)


def test_the_exponent_of_a_power_law_is_found_with_its_interval() -> None:
    exact = exponent("x", [Point(x=x, y=3 * x**-0.7) for x in (1, 10, 100, 1000)])
    assert exact is not None and exact.low is not None and exact.high is not None
    assert (exact.value, exact.low, exact.high) == pytest.approx((-0.7, -0.7, -0.7))
    random = np.random.default_rng(0)
    held = 0
    for _ in range(300):
        noise = np.exp(random.normal(0, 0.1, 5))
        drawn = exponent("x", [Point(x=4**n, y=4.0 ** (0.5 * n) * noise[n]) for n in range(5)])
        assert drawn is not None and drawn.low is not None and drawn.high is not None
        held += drawn.low <= 0.5 <= drawn.high
    assert 0.91 <= held / 300 <= 0.99
    assert exponent("x", [Point(x=1, y=1), Point(x=2, y=2)]) is None


def test_rungs_lie_around_what_they_measure() -> None:
    assert rungs_around(18_000, 410_000) == [10_000, 20_000, 50_000, 100_000, 200_000, 500_000]
    assert rungs_around(3, 3) == [2, 5]
    assert rungs_around(2, 5) == [2, 5]
    assert spaced([1, 2, 3, 10], lambda value: 30 * value) == [1, 3, 10]
