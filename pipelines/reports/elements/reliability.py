"""Reliability diagrams: accuracy over confidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pipelines.messages.translation import message
from pipelines.reports.elements.axes import COLOURS, Scale, horizontal_axis, percent, ticks, vertical_axis

SIDE, LEFT, TOP, RIGHT, BOTTOM = 300, 44, 10, 274, 252


def draw_reliability(points: Sequence[Mapping[str, Any]], stage: str, colour: int) -> Markup:
    """Draw accuracy over confidence, one point with its interval per bin; a calibrated model lies on the diagonal."""
    least = min(min(point["low"], point["confidence"]) for point in points)
    first = max(0.0, least - 0.05 * (1 - least))
    x, y = Scale(first, 1, LEFT, RIGHT), Scale(first, 1, BOTTOM, TOP)
    marks = ticks(first, 1, 4)
    drawn = [
        horizontal_axis(x, marks, TOP, BOTTOM, _tick),
        vertical_axis(y, marks, LEFT, RIGHT, _tick),
        Markup(
            '<line class="grid" style="stroke:var(--muted);stroke-dasharray:4 4" x1="{a}" y1="{b}" x2="{c}" y2="{d}"/>'
        ).format(a=x(first), b=y(first), c=x(1), d=y(1)),
        Markup('<polyline class="curve" style="stroke:currentColor" points="{p}"/>').format(
            p=" ".join(f"{x(point['confidence'])},{y(point['accuracy'])}" for point in points)
        ),
    ]
    drawn += [
        Markup(
            "<g><title>{t}</title>"
            '<line class="interval" x1="{x}" x2="{x}" y1="{l}" y2="{h}"/>'
            '<circle class="mean" cx="{x}" cy="{y}" r="4"/></g>'
        ).format(
            t=message(
                "{answers} answers, mean confidence {confidence}, accuracy {accuracy}",
                answers=point["answers"],
                confidence=percent(point["confidence"]),
                accuracy=percent(point["accuracy"]),
            ),
            x=x(point["confidence"]),
            y=y(point["accuracy"]),
            l=y(point["low"]),
            h=y(point["high"]),
        )
        for point in points
    ]
    drawn.append(
        Markup('<text class="tick" x="{x}" y="{y}" text-anchor="middle">{t}</text>').format(
            x=(LEFT + RIGHT) / 2, y=BOTTOM + 34, t=message("confidence")
        )
    )
    return Markup(
        '<svg viewBox="0 0 {w} {w}" role="img" aria-label="{l}"><g style="color:var(--c{c})">{p}</g></svg>'
    ).format(
        w=SIDE,
        l=message("Accuracy over confidence of {stage}", stage=stage),
        c=colour % COLOURS,
        p=Markup("").join(drawn),
    )


def _tick(value: float) -> str:
    return f"{100 * value:g} %"
