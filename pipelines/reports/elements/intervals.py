"""Estimates with intervals, one row each, as an SVG file of panels: one axis a panel, linear or logarithmic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pipelines.reports.elements.axes import Logarithmic, Scale, horizontal_axis, rungs_around, ticks
from pipelines.reports.style import PALETTE

WIDTH, LEFT, RIGHT, ROW, HEAD, FOOT = 960, 400, 28, 26, 54, 34
LABEL = 56
"""Characters of a row's name, at most."""
RULES = Markup(
    """\
text { font: 13px system-ui, sans-serif; fill: var(--ink) }
.tick { font-size: 11.5px; fill: var(--muted) } .grid { stroke: var(--faint) }
.neutral { stroke: var(--muted); stroke-dasharray: 4 4 }
.interval { stroke: currentColor; stroke-width: 2 } .mean { fill: currentColor }
.required { stroke: var(--ink); stroke-width: 2 }
"""
)


@dataclass(frozen=True)
class PlottedInterval:
    """One row: an estimate, the ends of its interval, and what it is to exceed."""

    name: str
    value: float
    low: float
    high: float
    text: str
    """The same in words, shown where the pointer rests."""
    required: float | None = None
    """Drawn as a tick; None where nothing is required."""
    style: str = "accent"
    """Colour of the page's style: accent, muted, good, bad, unsure."""


@dataclass(frozen=True)
class Panel:
    """Rows on one axis."""

    title: str
    axis: str
    """What the axis counts."""
    rows: Sequence[PlottedInterval]
    tick: Callable[[float], str]
    logarithmic: bool = False
    neutral: float | None = None
    """Value of no difference, which the axis shows in any case; None where there is none."""


def draw_panels(panels: Sequence[Panel], label: str) -> str:
    """An SVG file of `panels`, one below the other; `label` is its accessible name."""
    top, drawn = 0.0, []
    for panel in panels:
        drawn.append(_panel(panel, top))
        top += HEAD + ROW * len(panel.rows) + FOOT
    svg = Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" role="img" aria-label="{l}">\n'
        '<style>\n{s}{r}</style>\n<rect width="{w}" height="{h}" fill="var(--paper)"/>\n{p}\n</svg>\n'
    )
    return str(svg.format(w=WIDTH, h=round(top), l=label, s=PALETTE, r=RULES, p=Markup("\n").join(drawn)))


def _panel(panel: Panel, above: float) -> Markup:
    top = above + HEAD
    bottom = top + ROW * len(panel.rows)
    x, marks = _axis(panel)
    parts = [
        Markup('<text x="20" y="{y}" font-weight="600">{t}</text>').format(y=above + 24, t=panel.title),
        Markup('<text class="tick" x="{x}" y="{y}" text-anchor="end">{t}</text>').format(
            x=WIDTH - RIGHT, y=above + 24, t=panel.axis
        ),
        horizontal_axis(x, marks, top, bottom, panel.tick),
    ]
    if panel.neutral is not None:
        parts.append(_mark("neutral", x(panel.neutral), top, bottom))
    for position, row in enumerate(panel.rows):
        y = top + ROW * (position + 0.5)
        parts.append(
            Markup(
                '<g style="color:var(--{c})"><title>{n}: {t}</title>'
                '<text x="{nx}" y="{ny}" text-anchor="end">{s}</text>'
                '<line class="interval" x1="{a}" x2="{b}" y1="{y}" y2="{y}"/>{r}'
                '<circle class="mean" cx="{x}" cy="{y}" r="5"/></g>'
            ).format(
                c=row.style,
                n=row.name,
                t=row.text,
                s=row.name if len(row.name) <= LABEL else row.name[: LABEL - 1] + "…",
                nx=LEFT - 16,
                ny=y + 4,
                a=x(row.low),
                b=x(row.high),
                y=y,
                x=x(row.value),
                r="" if row.required is None else _mark("required", x(row.required), y - 8, y + 8),
            )
        )
    return Markup("\n").join(parts)


def _axis(panel: Panel) -> tuple[Scale, list[float]]:
    """The scale of a panel, with room at both ends, and its ticks."""
    every = [value for row in panel.rows for value in (row.low, row.value, row.high)]
    every += [row.required for row in panel.rows if row.required is not None]
    every += [] if panel.neutral is None else [panel.neutral]
    low, high = min(every), max(every)
    if panel.logarithmic:
        rungs = rungs_around(low, high)
        return Logarithmic(min(rungs[0], low), max(rungs[-1], high), LEFT, WIDTH - RIGHT), rungs
    margin = 0.04 * ((high - low) or abs(high) or 1.0)
    scale = Scale(low - margin, high + margin, LEFT, WIDTH - RIGHT)
    return scale, ticks(scale.first, scale.last, 7)


def _mark(style: str, x: float, top: float, bottom: float) -> Markup:
    return Markup('<line class="{c}" x1="{x}" x2="{x}" y1="{a}" y2="{b}"/>').format(c=style, x=x, a=top, b=bottom)
