"""Scores as dots with intervals, one row per stage or baseline."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from pipelines.messages.translation import message
from pipelines.reports.elements.axes import Scale, horizontal_axis, ticks
from pipelines.reports.elements.wording import estimate_text, metric_name, tick

ROW = 30


@dataclass(frozen=True)
class PlottedScore:
    """One row of the plot; scores between −1 and 1."""

    name: str
    mean: float
    low: float
    high: float
    per_seed: tuple[float, ...]
    baseline: bool = False


def draw_scores(rows: Sequence[PlottedScore], metric: str) -> Markup:
    """Draw a dot plot: the mean, its 95 % interval, and each seed as a small ring."""
    width, left, right, top = 960, 220, 24, 10
    bottom = top + ROW * len(rows)
    every = [value for row in rows for value in (row.low, row.high, *row.per_seed)]
    margin = 0.04 * ((max(every) - min(every)) or 0.1)
    lowest = 0.0 if min(every) >= 0 else -1.0
    x = Scale(max(lowest, min(every) - margin), min(1.0, max(every) + margin), left, width - right)
    parts = [horizontal_axis(x, ticks(x.first, x.last, 8), top, bottom, lambda value: tick(value, metric))]
    for position, row in enumerate(rows):
        y = top + ROW * (position + 0.5)
        colour = "var(--muted)" if row.baseline else "var(--accent)"
        parts.append(
            Markup(
                '<g style="color:{c}"><title>{t}</title>'
                '<text class="name" x="{nx}" y="{ny}" text-anchor="end">{n}</text>'
                '<line class="interval" x1="{a}" x2="{b}" y1="{y}" y2="{y}"/>{seeds}'
                '<circle class="mean" cx="{x}" cy="{y}" r="5.5"/></g>'
            ).format(
                c=colour,
                n=row.name,
                t=estimate_text(row.name, row.mean, row.low, row.high, metric),
                nx=left - 14,
                ny=y + 4,
                a=x(row.low),
                b=x(row.high),
                y=y,
                x=x(row.mean),
                seeds=Markup("").join(
                    Markup('<circle class="seed" cx="{x}" cy="{y}" r="3.5"/>').format(x=x(value), y=y)
                    for value in (row.per_seed if len(row.per_seed) > 1 else ())
                ),
            )
        )
    return Markup('<svg viewBox="0 0 {w} {h}" role="img" aria-label="{l}">{p}</svg>').format(
        w=width,
        h=bottom + 26,
        l=message("{metric} of every stage", metric=metric_name(metric)),
        p=Markup("").join(parts),
    )
