"""Estimates over layers or stages: lines with an interval at every position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from pipelines.reports.elements.axes import COLOURS, Scale, ticks, vertical_axis
from pipelines.reports.elements.wording import estimate_text, tick

OFFSET = 5
"""Pixels between two lines at one position, so that their intervals do not overlap."""


@dataclass(frozen=True)
class PlottedLine:
    """A line: an estimate (mean, low, high) for each position, None where there is none."""

    name: str
    values: Sequence[Mapping[str, Any] | None]
    chance: bool = False
    """Whether this is the chance level, drawn as a dashed line."""


def draw_lines(
    lines: Sequence[PlottedLine], positions: Sequence[str], metric: str, label: str, width: int = 960
) -> Markup:
    """Draw `lines` over named `positions`; `label` is the drawing's accessible name."""
    key = 150 if width > 500 and len(lines) > 1 else 0
    height, left, right, top = (320 if width > 500 else 190), 64, 24 + key, 12
    longest = max(map(len, positions)) * 7 * len(positions) > width - left - right
    bottom = height - (64 if longest else 30)
    every = [value[end] for line in lines for value in line.values if value is not None for end in ("low", "high")]
    margin = 0.08 * ((max(every) - min(every)) or 0.1)
    y = Scale(min(every) - margin, max(every) + margin, bottom, top)
    step = (width - left - right) / len(positions)
    parts = [vertical_axis(y, ticks(y.first, y.last, 5), left, width - right, lambda value: tick(value, metric))]
    for number, name in enumerate(positions):
        x = left + step * (number + 0.5)
        turned = f' transform="rotate(-24 {x} {bottom + 18})"' if longest else ""
        anchor = "end" if longest else "middle"
        parts.append(
            Markup('<text class="tick" x="{x}" y="{y}" text-anchor="{a}"{t}>{n}</text>').format(
                x=x, y=bottom + 18, a=anchor, t=Markup(turned), n=name
            )
        )
    measured = [line for line in lines if not line.chance]
    for line in lines:
        number = measured.index(line) if line in measured else 0
        shift = 0 if line.chance else OFFSET * (number - (len(measured) - 1) / 2)
        colour = "var(--muted)" if line.chance else f"var(--c{number % COLOURS})"
        points = [
            (left + step * (position + 0.5) + shift, value)
            for position, value in enumerate(line.values)
            if value is not None
        ]
        parts.append(_line(line, points, y, colour, metric))
        if key:
            parts.append(
                Markup(
                    '<g class="key"><line x1="{a}" x2="{b}" y1="{y}" y2="{y}" style="stroke:{c}"/>'
                    '<text x="{t}" y="{z}">{n}</text></g>'
                ).format(
                    a=width - right + 14,
                    b=width - right + 30,
                    t=width - right + 36,
                    y=top + 8 + 19 * lines.index(line),
                    z=top + 12 + 19 * lines.index(line),
                    c=colour,
                    n=line.name,
                )
            )
    return Markup('<svg viewBox="0 0 {w} {h}" role="img" aria-label="{l}">{p}</svg>').format(
        w=width, h=height, l=label, p=Markup("").join(parts)
    )


def _line(
    line: PlottedLine, points: Sequence[tuple[float, Mapping[str, Any]]], y: Scale, colour: str, metric: str
) -> Markup:
    path = " ".join(f"{round(x, 2)},{y(value['mean'])}" for x, value in points)
    drawn = [
        Markup('<polyline class="{k}" style="stroke:{c}" points="{p}"><title>{n}</title></polyline>').format(
            k="curve term" if line.chance else "curve", c=colour, p=path, n=line.name
        )
    ]
    if not line.chance:
        drawn += [
            Markup(
                '<g style="color:{c}"><title>{n}</title>'
                '<line class="interval" x1="{x}" x2="{x}" y1="{a}" y2="{b}"/>'
                '<circle class="mean" cx="{x}" cy="{y}" r="4"/></g>'
            ).format(
                c=colour,
                n=estimate_text(line.name, value["mean"], value["low"], value["high"], metric),
                x=round(x, 2),
                a=y(value["low"]),
                b=y(value["high"]),
                y=y(value["mean"]),
            )
            for x, value in points
        ]
    return Markup("").join(drawn)
