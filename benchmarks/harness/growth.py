"""How something grows: the exponent of a power law, from least squares on logarithms."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from benchmarks.harness.record import Figure, Point, Turn
from benchmarks.harness.turns import rate

T_975 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31)
"""Student's t at 97.5 % for one degree of freedom, two, …"""


def exponent(name: str, points: Sequence[Point]) -> Figure | None:
    """The b of y = a·xᵇ with its 95 % interval, which holds where the points lie about a power law; None of fewer than three
    points. A curve that bends has a wide interval."""
    if len(points) < 3:
        return None
    x, y = (np.log([getattr(point, axis) for point in points]) for axis in ("x", "y"))
    b, a = np.polyfit(x, y, 1)
    freedom = len(points) - 2
    spread = math.sqrt(float(((y - a - b * x) ** 2).sum()) / freedom / float(((x - x.mean()) ** 2).sum()))
    width = T_975[min(freedom, len(T_975)) - 1] * spread
    return Figure(name=name, value=float(b), unit="", low=float(b) - width, high=float(b) + width)


def point(x: float, turns: Sequence[Turn]) -> Point:
    """What is done in a second at `x`, with its interval."""
    found = rate("", turns, "")
    return Point(x=x, y=found.value, low=found.low, high=found.high)
