"""Scores over the number of labelled examples, a curve for each path."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pipelines.messages.translation import message
from pipelines.reports.elements.axes import COLOURS, Scale, ticks, vertical_axis
from pipelines.reports.elements.wording import tick

WIDTH, HEIGHT, LEFT, RIGHT = 960, 380, 64, 210


def draw_label_curves(sizes: Sequence[Mapping[str, Any]], every: int, metric: str) -> Markup:
    """Draw the score of every path over the number of labels.

    `sizes` are the lattice's records by number of labels, fewest first; `every` is the number of all examples.
    """
    numbers = [size["labelled"] or every for size in sizes]
    curves: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for size in sizes:
        for path in size["paths"]:
            curves.setdefault(tuple(path["through"]), []).append(path["score"])
    scores = [value for curve in curves.values() for one in curve for value in (one["low"], one["high"])]
    x = Scale(math.log(numbers[0]), math.log(numbers[-1]), LEFT, WIDTH - RIGHT)
    y = Scale(min(scores), max(scores), HEIGHT - 34, 12)
    parts = [vertical_axis(y, ticks(y.first, y.last), LEFT, WIDTH - RIGHT, lambda value: tick(value, metric))]
    parts += [
        Markup('<text class="tick" x="{x}" y="{y}" text-anchor="middle">{n}</text>').format(
            x=x(math.log(number)),
            y=HEIGHT - 12,
            n=f"{number:,}" if size["labelled"] else message("all {number:,}", number=number),
        )
        for number, size in zip(numbers, sizes, strict=True)
    ]
    for turn, (through, curve) in enumerate(curves.items()):
        colour = f"var(--c{turn % COLOURS})"
        positions = [(x(math.log(number)), y(one["mean"])) for number, one in zip(numbers, curve, strict=True)]
        line = " ".join(f"{a},{b}" for a, b in positions)
        bars = Markup("").join(
            Markup(
                '<line x1="{x}" x2="{x}" y1="{a}" y2="{b}" stroke="currentColor" stroke-width="1" opacity=".5"/>'
            ).format(x=position[0] + 3 * (turn - len(curves) / 2), a=y(one["low"]), b=y(one["high"]))
            for position, one in zip(positions, curve, strict=True)
        )
        parts.append(
            Markup(
                '<g style="color:{c}">{bars}<polyline class="curve" stroke="currentColor" points="{p}"/>'
                '<line x1="{kx}" x2="{kz}" y1="{ky}" y2="{ky}" stroke="currentColor" stroke-width="3"/>'
                '<text x="{kt}" y="{kb}">{n}</text></g>'
            ).format(
                c=colour,
                bars=bars,
                p=line,
                kx=WIDTH - RIGHT + 18,
                kz=WIDTH - RIGHT + 34,
                ky=20 + 20 * turn,
                kt=WIDTH - RIGHT + 42,
                kb=24 + 20 * turn,
                n=" + ".join(through) or message("from scratch"),
            )
        )
    return Markup('<svg viewBox="0 0 {w} {h}" role="img" aria-label="{l}">{p}</svg>').format(
        w=WIDTH, h=HEIGHT, l=message("Scores by labelled examples"), p=Markup("").join(parts)
    )
