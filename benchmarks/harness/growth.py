"""Growth as a power law: its exponent from least squares on logarithms."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import linregress, t

from benchmarks.harness.record import Figure, Point, Turn
from benchmarks.harness.turns import rate


def exponent(name: str, points: Sequence[Point]) -> Figure | None:
    """The exponent b of y = a·xᵇ with its 95 % interval, valid if the points scatter around a power law; None for fewer
    than three points. A bent curve yields a wide interval."""
    if len(points) < 3:
        return None
    x, y = (np.log([getattr(point, axis) for point in points]) for axis in ("x", "y"))
    fit = linregress(x, y)
    b, width = float(fit.slope), float(t.ppf(0.975, len(points) - 2) * fit.stderr)
    return Figure(name=name, value=b, unit="", low=b - width, high=b + width)


def point(x: float, turns: Sequence[Turn]) -> Point:
    """The rate per second at `x`, with its interval."""
    speed = rate("", turns, "")
    return Point(x=x, y=speed.value, low=speed.low, high=speed.high)
