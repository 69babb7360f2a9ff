"""How something grows: the exponent of a power law, from least squares on logarithms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import linregress, t

from benchmarks.harness.record import Figure, Point, Turn
from benchmarks.harness.turns import rate


def exponent(name: str, points: Sequence[Point]) -> Figure | None:
    """The b of y = a·xᵇ with its 95 % interval, which holds where the points lie about a power law; None of fewer than three
    points. A curve that bends has a wide interval."""
    if len(points) < 3:
        return None
    x, y = (np.log([getattr(point, axis) for point in points]) for axis in ("x", "y"))
    fit = linregress(x, y)
    b, width = float(fit.slope), float(t.ppf(0.975, len(points) - 2) * fit.stderr)
    return Figure(name=name, value=b, unit="", low=b - width, high=b + width)


def point(x: float, turns: Sequence[Turn]) -> Point:
    """What is done in a second at `x`, with its interval."""
    speed = rate("", turns, "")
    return Point(x=x, y=speed.value, low=speed.low, high=speed.high)
