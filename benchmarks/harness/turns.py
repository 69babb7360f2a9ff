"""Variants that take turns (A B C A B C …), and their statistics.

Ratios are computed per round, so that a temporary slowdown of the machine affects all variants of a round; the value is
their median, with its percentile bootstrap interval over rounds (Efron & Tibshirani 1993, ch. 13).
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from benchmarks.harness.record import Figure, Turn

DRAWS = 2000
INTERVAL = (2.5, 97.5)
"""Percentiles."""

Turns = dict[str, tuple[Turn, ...]]


def take_turns(ways: Mapping[str, Callable[[], Turn]], rounds: int) -> Turns:
    """Run `rounds` turns of each variant, alternating; every other round in reverse order, so that none always follows
    the same."""
    turns: dict[str, list[Turn]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways)[:: 1 if number % 2 == 0 else -1]:
            turns[name].append(ways[name]())
    return {name: tuple(taken) for name, taken in turns.items()}


def timed(work: Callable[[], float]) -> Turn:
    """Time a turn of this process and of the processes that it starts and waits for; `work` returns its amount of
    work."""
    begun, used = time.perf_counter(), _processor_seconds()
    units = work()
    return Turn(units=units, seconds=time.perf_counter() - begun, cpu=_processor_seconds() - used)


def ratio(name: str, ours: Sequence[Turn], baseline: Sequence[Turn], against: str, unit: str = "x") -> Figure:
    """Ratio of our rate to that of `baseline`."""
    wall = [(a.units / a.seconds) / (b.units / b.seconds) for a, b in zip(ours, baseline, strict=True)]
    processor = [
        (a.units / a.cpu) / (b.units / b.cpu) for a, b in zip(ours, baseline, strict=True) if a.cpu > 0 and b.cpu > 0
    ]
    low, high = interval(wall)
    return Figure(
        name=name,
        value=float(np.median(wall)),
        unit=unit,
        low=low,
        high=high,
        against=against,
        cpu=float(np.median(processor)) if processor else None,
    )


def rate(name: str, turns: Sequence[Turn], unit: str, scale: float = 1.0) -> Figure:
    """The rate per second, divided by `scale`."""
    return median(name, [turn.units / turn.seconds / scale for turn in turns], unit)


def median(name: str, values: Sequence[float], unit: str) -> Figure:
    """The median of some values, with its interval."""
    low, high = interval(values)
    return Figure(name=name, value=float(np.median(values)), unit=unit, low=low, high=high)


def interval(values: Sequence[float]) -> tuple[float | None, float | None]:
    """The 95 % interval of the median; (None, None) for a single value."""
    if len(values) < 2:
        return None, None
    random = np.random.default_rng(0)
    drawn = random.choice(np.asarray(values, dtype=np.float64), size=(DRAWS, len(values)))
    low, high = np.percentile(np.median(drawn, axis=1), INTERVAL)
    return float(low), float(high)


def _processor_seconds() -> float:
    """Processor time of this process and of its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)
