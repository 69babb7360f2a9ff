"""What turns say: ratios round by round, and how sure they are; and what a step's products are."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from benchmarks.harness.floor import Shape, flops
from benchmarks.harness.record import Turn
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
