"""A plot of a record as an SVG file, readable on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from benchmarks.harness.record import Plot
from pipelines.reports.elements.axes import (
    COLOURS,
    Logarithmic,
    count,
    horizontal_axis,
    rungs_around,
    vertical_axis,
)
from pipelines.reports.style import PALETTE

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 720, 340, 64, 24, 54, 280
KEY = 150
"""Width of the legend."""
RULES = Markup(
    """\
text { font: 13px system-ui, sans-serif; fill: var(--ink) }
.tick { font-size: 11.5px; fill: var(--muted) } .grid { stroke: var(--faint) }
.curve { fill: none; stroke-width: 1.7 } .spread { stroke-width: 1.2 }
"""
)


def draw(plot: Plot) -> str:
    """The SVG text: both axes logarithmic, an error bar for each interval."""
    points = [point for series in plot.series for point in series.points]
    right = WIDTH - RIGHT - (KEY if len(plot.series) > 1 else 0)
    xs = sorted({point.x for point in points})
    heights = [value for point in points for value in (point.y, point.low, point.high) if value]
    rungs = rungs_around(min(heights), max(heights))
    x = Logarithmic(xs[0], xs[-1], LEFT + 12, right - 12)
    y = Logarithmic(rungs[0], rungs[-1], BOTTOM, TOP)
    drawn = [
        Markup('<rect width="{w}" height="{h}" fill="var(--paper)"/>').format(w=WIDTH, h=HEIGHT),
        Markup('<text x="{x}" y="22">{t}</text>').format(x=LEFT - 40, t=plot.title),
        Markup('<text class="tick" x="{x}" y="38">{t}</text>').format(x=LEFT - 40, t=plot.y),
        Markup('<text class="tick" x="{x}" y="{y}" text-anchor="middle">{t}</text>').format(
            x=(LEFT + right) / 2, y=BOTTOM + 40, t=plot.x
        ),
        horizontal_axis(x, spaced(xs, x), TOP, BOTTOM, count),
        vertical_axis(y, rungs, LEFT, right, count),
    ]
    for number, series in enumerate(plot.series):
        colour = f"var(--c{number % COLOURS})"
        line = " ".join(f"{x(point.x)},{y(point.y)}" for point in series.points)
        drawn.append(Markup('<polyline class="curve" stroke="{c}" points="{p}"/>').format(c=colour, p=line))
        for point in series.points:
            if point.low and point.high:
                drawn.append(
                    Markup('<line class="spread" stroke="{c}" x1="{x}" x2="{x}" y1="{a}" y2="{b}"/>').format(
                        c=colour, x=x(point.x), a=y(point.low), b=y(point.high)
                    )
                )
            drawn.append(
                Markup('<circle fill="{c}" cx="{x}" cy="{y}" r="3"><title>{t}</title></circle>').format(
                    c=colour, x=x(point.x), y=y(point.y), t=f"{count(point.x)}: {point.y:.3g}"
                )
            )
        if len(plot.series) > 1:
            drawn.append(
                Markup(
                    '<line stroke="{c}" stroke-width="3" x1="{a}" x2="{b}" y1="{y}" y2="{y}"/>'
                    '<text x="{t}" y="{z}">{n}</text>'
                ).format(
                    c=colour,
                    a=right + 14,
                    b=right + 30,
                    t=right + 36,
                    y=TOP + 8 + 20 * number,
                    z=TOP + 12 + 20 * number,
                    n=series.name,
                )
            )
    svg = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" role="img" aria-label="{l}">\n'
        "<style>\n{s}{r}</style>\n{p}\n</svg>\n"
    )
    return str(svg.format(w=WIDTH, h=HEIGHT, l=plot.title, s=PALETTE, r=RULES, p=Markup("\n").join(drawn)))


def spaced(values: Sequence[float], position: Callable[[float], float], gap: float = 36) -> list[float]:
    """The ascending `values` whose positions are at least `gap` pixels apart, including the first."""
    chosen: list[float] = []
    for value in values:
        if not chosen or position(value) - position(chosen[-1]) >= gap:
            chosen.append(value)
    return chosen
