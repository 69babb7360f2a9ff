"""Served forms of models as a picture: the score lost against bytes and against milliseconds, and the front of each.

The drawing is narrow, so that its text is still read where a page is 400 pixels wide; its colours follow the page's
style, light or dark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from markupsafe import Markup

from pipelines.judging.front import ServedForm, front
from pipelines.judging.limits import Limits, megabytes
from pipelines.messages.translation import message
from pipelines.reports.elements.axes import Logarithmic, Scale, horizontal_axis, rungs_around, ticks, vertical_axis
from pipelines.reports.elements.wording import difference, measured_in
from pipelines.reports.style import PALETTE

WIDTH, LEFT, RIGHT, HEAD, HEIGHT, FOOT = 480, 46, 14, 40, 230, 40
LETTER, LINE = 6.6, 15.0
"""Width of a letter and height of a line of a label, in the drawing's units."""
OFFSETS = (-9.0, 18.0, -24.0, 33.0, -39.0, 48.0, -54.0, 63.0)
"""Distances of a label's baseline from its point, the preferred first."""
RULES = Markup(
    """\
.front text { font: 13px system-ui, sans-serif; fill: var(--ink) }
.front .tick { font-size: 12px; fill: var(--muted) } .front .grid { stroke: var(--faint) }
.front .others { stroke: var(--muted); fill: var(--paper) } .front .bar { opacity: .3 }
.front .teacher { stroke: var(--ink); fill: var(--ink) } .front .teacher .bar { opacity: 0 }
.front .best { stroke: var(--accent); fill: var(--accent) } .front .best .bar { opacity: 1; stroke-width: 1.6 }
.front .chosen { stroke: var(--good); fill: var(--good) } .front .chosen .bar { opacity: 1; stroke-width: 2.4 }
.front .line { fill: none; stroke: var(--accent); stroke-width: 1.6; stroke-dasharray: 1 4; stroke-linecap: round }
.front .zero { stroke: var(--muted); stroke-dasharray: 4 4 }
.front .limit { stroke: var(--bad); stroke-width: 1.4 } .front .beyond { fill: var(--bad); opacity: .07 }
"""
)


@dataclass(frozen=True)
class Axis:
    """What a panel has from left to right: a cost."""

    title: str
    cost: Callable[[ServedForm], float]
    write: Callable[[float], str]
    limit: float | None = None


@dataclass
class _Labels:
    """Labels that have been placed, as boxes."""

    boxes: list[tuple[float, float, float, float]] = field(default_factory=list)

    def put(self, text: str, x: float, y: float, top: float, bottom: float) -> Markup:
        """A label next to a point, where no other label is."""
        width = LETTER * len(text)
        ends = x + width > WIDTH - 4
        left = max(2.0, x - width if ends else x)
        height = y + OFFSETS[0]
        for offset in OFFSETS:
            box = (left, y + offset - LINE + 3, left + width, y + offset + 3)
            free = all(box[2] < one[0] or one[2] < box[0] or box[3] <= one[1] or one[3] <= box[1] for one in self.boxes)
            if free and top + 8 <= y + offset <= bottom - 2:
                height = y + offset
                self.boxes.append(box)
                break
        return Markup('<text x="{x}" y="{y}" style="stroke:none">{t}</text>').format(
            x=round(left, 1), y=round(height, 1), t=text
        )


def draw_front(
    forms: Sequence[ServedForm], metric: str, limits: Limits | None = None, chosen: ServedForm | None = None
) -> Markup:
    """An SVG element: both panels, one below the other. The first of `forms` is the teacher."""
    limits = limits or Limits()
    axes = (
        Axis(message("Score against size on disk"), lambda one: one.bytes, megabytes, limits.bytes),
        Axis(
            message("Score against milliseconds, one example"),
            lambda one: one.milliseconds,
            lambda value: f"{value:g}",
            limits.milliseconds,
        ),
    )
    panels = [
        _panel(
            forms, axis, metric, number * (HEAD + HEIGHT + FOOT), None if limits.loss is None else -limits.loss, chosen
        )
        for number, axis in enumerate(axes)
    ]
    return Markup(
        '<svg class="front" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {w} {h}" role="img" aria-label="{l}">\n'
        "<style>\n{s}</style>\n{p}\n</svg>"
    ).format(
        w=WIDTH,
        h=len(axes) * (HEAD + HEIGHT + FOOT),
        l=message(
            "Difference from the teacher, {unit}, against size and time of {forms} served forms",
            unit=measured_in(metric),
            forms=len(forms),
        ),
        s=RULES,
        p=Markup("\n").join(panels),
    )


def front_file(drawing: Markup) -> str:
    """The drawing as a file of its own, with the colours of the style."""
    head, mark, rest = str(drawing).partition("<style>\n")
    return f"{head}{mark}{PALETTE}svg {{ background: var(--paper) }}\n{rest}\n"


def _panel(
    forms: Sequence[ServedForm],
    axis: Axis,
    metric: str,
    above: float,
    least: float | None,
    chosen: ServedForm | None,
) -> Markup:
    top, bottom = above + HEAD, above + HEAD + HEIGHT
    costs = [axis.cost(one) for one in forms] + ([] if axis.limit is None else [axis.limit])
    rungs = rungs_around(min(costs), max(costs))
    x = Logarithmic(min(rungs[0], *costs), max(rungs[-1], *costs), LEFT + 10, WIDTH - RIGHT - 10)
    every = [0.0, *([] if least is None else [least])]
    every += [end for one in forms for end in (one.difference_low, one.difference_high)]
    margin = 0.05 * ((max(every) - min(every)) or 0.01)
    y = Scale(min(every) - margin, max(every) + margin, bottom, top)
    best = front(forms, axis.cost)
    labels = _Labels()
    parts = [
        Markup('<text x="{x}" y="{y}" font-weight="600">{t}</text>').format(x=4, y=above + 18, t=axis.title),
        Markup('<text class="tick" x="{x}" y="{y}">{t}</text>').format(
            x=4, y=above + 34, t=message("{unit} against the teacher", unit=measured_in(metric))
        ),
        horizontal_axis(x, rungs, top, bottom, axis.write),
        vertical_axis(y, ticks(y.first, y.last, 5), LEFT, WIDTH - RIGHT, lambda value: _tick(value, metric)),
        _line("zero", LEFT, WIDTH - RIGHT, y(0.0), y(0.0)),
        *_limits(axis, least, x, y, top, bottom),
        Markup('<polyline class="line" points="{p}"/>').format(
            p=" ".join(f"{x(axis.cost(one))},{y(one.difference)}" for one in best)
        ),
    ]
    ranked = sorted(forms, key=lambda one: (one == chosen, one in best))
    for one in ranked:
        style = _style(one, forms[0], best, chosen)
        parts.append(_point(one, style, x(axis.cost(one)), y, metric))
    for one in sorted(forms, key=lambda one: (one != chosen, axis.cost(one))):
        if one in best or one in (chosen, forms[0]):
            name = "teacher" if one == forms[0] else one.stage
            parts.append(labels.put(name, x(axis.cost(one)), y(one.difference), top, bottom))
    return Markup("\n").join(parts)


def _style(one: ServedForm, teacher: ServedForm, best: Sequence[ServedForm], chosen: ServedForm | None) -> str:
    if one == chosen:
        return "chosen"
    return "teacher" if one == teacher else "best" if one in best else "others"


def _limits(axis: Axis, least: float | None, x: Scale, y: Scale, top: float, bottom: float) -> list[Markup]:
    """What is beyond the limits, and their lines."""
    drawn = []
    if axis.limit is not None:
        at = x(axis.limit)
        drawn += [_area(at, WIDTH - RIGHT, top, bottom), _line("limit", at, at, top, bottom)]
    if least is not None:
        at = y(least)
        drawn += [_area(LEFT, WIDTH - RIGHT, at, bottom), _line("limit", LEFT, WIDTH - RIGHT, at, at)]
    return drawn


def _point(one: ServedForm, style: str, at: float, y: Scale, metric: str) -> Markup:
    return Markup(
        '<g class="{c}"><title>{t}</title><line class="bar" x1="{x}" x2="{x}" y1="{a}" y2="{b}"/>'
        '<circle cx="{x}" cy="{y}" r="{r}"/></g>'
    ).format(
        c=style,
        t=f"{one.title}: {megabytes(one.bytes)}, {one.milliseconds:.2g} ms, {difference(one.difference, metric)}",
        x=at,
        a=y(one.difference_low),
        b=y(one.difference_high),
        y=y(one.difference),
        r=3 if style == "others" else 5,
    )


def _line(style: str, left: float, right: float, top: float, bottom: float) -> Markup:
    return Markup('<line class="{c}" x1="{l}" x2="{r}" y1="{a}" y2="{b}"/>').format(
        c=style, l=left, r=right, a=top, b=bottom
    )


def _area(left: float, right: float, top: float, bottom: float) -> Markup:
    return Markup('<rect class="beyond" x="{x}" y="{y}" width="{w}" height="{h}"/>').format(
        x=left, y=top, w=round(max(0.0, right - left), 2), h=round(max(0.0, bottom - top), 2)
    )


def _tick(value: float, metric: str) -> str:
    return "0" if abs(value) < 1e-9 else difference(value, metric).removesuffix(".0")
