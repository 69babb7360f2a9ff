"""Scales, round ticks, and number formats."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pipelines.messages.translation import message

COLOURS = 8
"""Categorical colours that the page's style defines as --c0 … --c7."""
CROWDED = 7
"""Largest number of readable ticks on a logarithmic axis."""


@dataclass(frozen=True)
class Scale:
    """A linear map from values [first, last] to pixels [start, end]."""

    first: float
    last: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        span = (self.last - self.first) or 1.0
        return round(self.start + (value - self.first) / span * (self.end - self.start), 2)


@dataclass(frozen=True)
class Logarithmic(Scale):
    """A logarithmic scale for positive values."""

    def __call__(self, value: float) -> float:
        return Scale(math.log(self.first), math.log(self.last), self.start, self.end)(math.log(value))


def ticks(low: float, high: float, about: int = 5) -> list[float]:
    """Round values inside [low, high], roughly `about` of them."""
    if not high > low:
        return [low]
    rough = (high - low) / about
    magnitude: float = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * magnitude for factor in (1, 2, 2.5, 5, 10) if factor * magnitude >= rough * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [round(index * step, 12) for index in range(first, last + 1)]


def rungs_around(low: float, high: float) -> list[float]:
    """Ticks at 1, 2 and 5 times powers of ten around [low, high]; fewer per decade if those would be too many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for factors in ((1.0, 2.0, 5.0), (1.0, 3.0), (1.0,)):
        every = [round(factor * 10.0**power, 12) for power in range(first, last + 1) for factor in factors]
        below = max((one for one in every if one <= low * (1 + 1e-9)), default=every[0])
        above = min((one for one in every if one >= high * (1 - 1e-9)), default=every[-1])
        chosen = [one for one in every if below <= one <= above]
        if len(chosen) <= CROWDED:
            break
    return chosen if len(chosen) > 1 else [*chosen, 2 * chosen[0]]


def count(value: float) -> str:
    """1234567 → `1.2M`."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.1f}".rstrip("0").rstrip(".") + unit
    return f"{value:g}"


def percent(value: float) -> str:
    """0.6132 → `61.3 %`."""
    return f"{100 * value:.1f} %"


def points(value: float) -> str:
    """A difference of shares in percentage points: 0.021 → `+2.1`."""
    return f"{100 * value:+.1f}".replace("-", "−")


def duration(seconds: float | None) -> str:
    """95.2 → `1 min 35 s`."""
    if seconds is None:
        return ""
    if seconds < 60:
        return message("{seconds} s", seconds=f"{seconds:.0f}" if seconds >= 10 else f"{seconds:.1f}")
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return message("{hours} h {minutes} min", hours=hours, minutes=minutes)
    return message("{minutes} min {seconds} s", minutes=minutes, seconds=rest)


def horizontal_axis(
    scale: Scale, values: Sequence[float], top: float, bottom: float, write: Callable[[float], str]
) -> Markup:
    """Vertical grid lines from `top` to `bottom`, numbers below them."""
    return Markup("").join(
        Markup(
            '<line class="grid" x1="{x}" x2="{x}" y1="{a}" y2="{b}"/>'
            '<text class="tick" x="{x}" y="{y}" text-anchor="middle">{t}</text>'
        ).format(x=scale(value), a=top, b=bottom, y=bottom + 16, t=write(value))
        for value in values
    )


def vertical_axis(
    scale: Scale, values: Sequence[float], left: float, right: float, write: Callable[[float], str]
) -> Markup:
    """Horizontal grid lines from `left` to `right`, numbers before them."""
    return Markup("").join(
        Markup(
            '<line class="grid" x1="{a}" x2="{b}" y1="{y}" y2="{y}"/>'
            '<text class="tick" x="{x}" y="{z}" text-anchor="end">{t}</text>'
        ).format(a=left, b=right, y=scale(value), z=scale(value) + 4, x=left - 8, t=write(value))
        for value in values
    )
