"""Losses of every stage over the tokens seen since the first stage of its lineage."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from pipelines.lineage.results import METRICS
from pipelines.lineage.weights import weight_history
from pipelines.messages.translation import message
from pipelines.reports.elements.axes import COLOURS, Scale, count, horizontal_axis, ticks, vertical_axis

TOTAL = "train/loss"
MOST_POINTS = 160

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class Curve:
    """Training curves of a step: (tokens since its own start, value) of the total loss and of each of its terms."""

    stage: str
    seed: int
    before: int
    """Tokens that its ancestors were trained on."""
    total: Points
    terms: dict[str, Points]


def read_curves(
    steps: Sequence[Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]], store: Path
) -> list[Curve]:
    """The curves of all steps that logged a loss, in the order of `steps`."""
    curves = []
    for step in steps:
        path = store / step["fingerprint"] / METRICS
        series: dict[str, Points] = {}
        if path.is_file():
            for line in path.read_text(encoding="utf-8").splitlines():
                logged = json.loads(line)
                for name, value in logged.items():
                    if name.startswith("train/") and isinstance(value, (int, float)):
                        series.setdefault(name, []).append(
                            (float(logged.get("tokens", logged.get("step", 0))), float(value))
                        )
        if series.get(TOTAL):
            terms = {name.removeprefix("train/"): thinned(values) for name, values in series.items() if name != TOTAL}
            before = tokens_before(step["fingerprint"], records)
            curves.append(Curve(step["stage"], int(step["seed"]), before, thinned(series[TOTAL]), terms))
    return curves


def tokens_before(fingerprint: str, records: Mapping[str, Mapping[str, Any]]) -> int:
    """Number of tokens that the ancestors of an artifact's weights were trained on."""
    ancestors = list(weight_history(fingerprint, records))[1:]
    return sum(int(record["result"].get("tokens", 0)) for record in ancestors)


def thinned(values: Points, most: int = MOST_POINTS) -> Points:
    """At most `most` points, each the mean of adjacent ones."""
    width = -(-len(values) // most)
    groups = [values[first : first + width] for first in range(0, len(values), width)]
    return [(sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group)) for group in groups]


def draw_lineage_curves(curves: Sequence[Curve]) -> Markup:
    """Draw the losses of all stages over one axis of tokens."""
    width, height, left, right, top, bottom = 960, 340, 48, 120, 12, 300
    shifted = [[(x + curve.before, y) for x, y in curve.total] for curve in curves]
    x = Scale(0, max(point[0] for line in shifted for point in line), left, width - right)
    highest = max(point[1] for line in shifted for point in line)
    y = Scale(0, highest * 1.04, bottom, top)
    drawn = [
        horizontal_axis(x, ticks(0, x.last, 8), top, bottom, count),
        vertical_axis(y, ticks(0, y.last), left, width - right, lambda value: f"{value:g}"),
        Markup('<text class="tick" x="{x}" y="{y}" text-anchor="middle">{t}</text>').format(
            x=(left + width - right) / 2,
            y=bottom + 34,
            t=message("tokens seen since the first stage of the lineage"),
        ),
    ]
    names = list(dict.fromkeys(curve.stage for curve in curves))
    drawn += [
        _line([(x(a), y(b)) for a, b in line], names.index(curve.stage), _of_seed(curve.stage, curve.seed))
        for curve, line in zip(curves, shifted, strict=True)
    ]
    for position, name in enumerate(names):
        drawn.append(
            Markup(
                '<g class="key"><line x1="{a}" x2="{b}" y1="{y}" y2="{y}" style="stroke:var(--c{c})"/>'
                '<text x="{t}" y="{z}">{name}</text></g>'
            ).format(
                a=width - right + 14,
                b=width - right + 30,
                t=width - right + 36,
                y=top + 8 + 19 * position,
                z=top + 12 + 19 * position,
                c=position % COLOURS,
                name=name,
            )
        )
    return _svg(width, height, message("Training losses of all stages over tokens"), drawn)


def draw_stage_curves(curves: Sequence[Curve]) -> list[dict[str, Any]]:
    """One small drawing per stage, over its own tokens, with the terms of its loss: `{stage, terms, svg}`."""
    width, height, left, top, bottom = 300, 170, 40, 10, 140
    drawings = []
    for position, stage in enumerate(dict.fromkeys(curve.stage for curve in curves)):
        own_curves = [curve for curve in curves if curve.stage == stage]
        terms = sorted({name for curve in own_curves for name in curve.terms})
        if len(terms) == 1:
            terms = []  # the only term is the total
        lines: list[tuple[Points, str | None, int]] = [(curve.total, None, curve.seed) for curve in own_curves]
        lines += [
            (curve.terms[name], name, curve.seed) for curve in own_curves for name in terms if name in curve.terms
        ]
        x = Scale(0, max(point[0] for line, _, _ in lines for point in line), left, width - 18)
        y = Scale(0, max(point[1] for line, _, _ in lines for point in line) * 1.05, bottom, top)
        drawn = [
            horizontal_axis(x, ticks(0, x.last, 3), top, bottom, count),
            vertical_axis(y, ticks(0, y.last, 4), left, width - 18, lambda value: f"{value:g}"),
        ]
        for line, name, seed in lines:
            colour = position if name is None else terms.index(name) + position + 1
            drawn.append(
                _line(
                    [(x(a), y(b)) for a, b in line], colour, _of_seed(name or message("loss"), seed), name is not None
                )
            )
        drawings.append(
            {
                "stage": stage,
                "colour": position % COLOURS,
                "terms": [(name, (terms.index(name) + position + 1) % COLOURS) for name in terms],
                "svg": _svg(width, height, message("Training loss of {stage}", stage=stage), drawn),
            }
        )
    return drawings


def _of_seed(name: str, seed: int) -> str:
    return message("{name}, seed {seed}", name=name, seed=seed)


def _line(pixels: Points, colour: int, title: str, dashed: bool = False) -> Markup:
    path = " ".join(f"{x},{y}" for x, y in pixels)
    kind = "curve term" if dashed else "curve"
    return Markup('<polyline class="{k}" style="stroke:var(--c{c})" points="{p}"><title>{t}</title></polyline>').format(
        k=kind, c=colour % COLOURS, p=path, t=title
    )


def _svg(width: int, height: int, label: str, parts: Sequence[Markup]) -> Markup:
    return Markup('<svg viewBox="0 0 {w} {h}" role="img" aria-label="{l}">{p}</svg>').format(
        w=width, h=height, l=label, p=Markup("").join(parts)
    )
