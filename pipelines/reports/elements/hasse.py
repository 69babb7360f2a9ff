"""A lattice of paths as a Hasse diagram: one column per number of stages, one edge per added stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pipelines.messages.translation import message
from pipelines.reports.elements.table import VERDICT_CLASSES, verdict_text
from pipelines.reports.elements.wording import difference, score, span

WIDTH, BOX, TALL, GAP = 960, 186, 54, 44


def draw_lattice(paths: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]], metric: str) -> Markup:
    """Draw `paths` with their scores, more stages further right, and `steps` between them with their effect."""
    columns: dict[int, list[Mapping[str, Any]]] = {}
    for path in paths:
        columns.setdefault(len(path["through"]), []).append(path)
    tallest = max(len(column) for column in columns.values())
    height = tallest * (TALL + GAP) + 8
    spacing = (WIDTH - BOX) / max(1, len(columns) - 1)
    at: dict[str, tuple[float, float]] = {}
    for number, column in columns.items():
        top = (height - len(column) * (TALL + GAP) + GAP) / 2
        for row, path in enumerate(column):
            at[path["stage"]] = (round(number * spacing, 1), round(top + row * (TALL + GAP), 1))
    best = max(paths, key=lambda path: float(path["score"]["mean"]))
    parts = [_edge(step, at, metric) for step in steps if step["from"] in at and step["to"] in at]
    parts += [_node(path, at[path["stage"]], metric, path is best) for path in paths]
    return Markup('<svg viewBox="0 0 {w} {h}" role="img" aria-label="{l}">{p}</svg>').format(
        w=WIDTH, h=height, l=message("Scores of every path"), p=Markup("").join(parts)
    )


def _edge(step: Mapping[str, Any], at: Mapping[str, tuple[float, float]], metric: str) -> Markup:
    (x0, y0), (x1, y1) = at[step["from"]], at[step["to"]]
    x0, y0, y1 = x0 + BOX, y0 + TALL / 2, y1 + TALL / 2
    known = {"good": "var(--good)", "bad": "var(--bad)"}.get(VERDICT_CLASSES.get(step["verdict"], ""), "var(--muted)")
    effect = difference(step["difference"], metric)
    # near the box where the edge starts, before edges cross
    lx, ly = x0 + (x1 - x0) * 0.26, y0 + (y1 - y0) * 0.26 - 4
    return Markup(
        '<g style="color:{c}"><title>{t}</title>'
        '<line x1="{x0}" y1="{y0}" x2="{x1}" y2="{y1}" stroke="currentColor" stroke-width="{w}"/>'
        '<text class="tick" x="{lx}" y="{ly}" text-anchor="middle" style="fill:currentColor">{d}</text></g>'
    ).format(
        c=known,
        t=message(
            "{stage} added: {difference} ({low} to {high}), {verdict}",
            stage=step["adds"],
            difference=effect,
            low=difference(step["low"], metric),
            high=difference(step["high"], metric),
            verdict=verdict_text(step["verdict"]),
        ),
        d=effect,
        x0=x0,
        y0=y0,
        x1=x1,
        y1=y1,
        w=1.2 if step["verdict"] == "cannot tell" else 2.4,
        lx=round(lx, 1),
        ly=round(ly, 1),
    )


def _node(path: Mapping[str, Any], corner: tuple[float, float], metric: str, best: bool) -> Markup:
    x, y = corner
    return Markup(
        '<g><rect x="{x}" y="{y}" width="{w}" height="{t}" rx="4" '
        'style="fill:var(--panel);stroke:{s};stroke-width:{k}"/>'
        '<text class="name" x="{m}" y="{a}" text-anchor="middle">{n}</text>'
        '<text class="tick" x="{m}" y="{b}" text-anchor="middle">{v}  {i}</text></g>'
    ).format(
        x=x,
        y=y,
        w=BOX,
        t=TALL,
        s="var(--accent)" if best else "var(--muted)",
        k=2 if best else 1,
        m=round(x + BOX / 2, 1),
        a=y + 22,
        b=y + 41,
        n=" + ".join(path["through"]) or message("from scratch"),
        v=score(path["score"]["mean"], metric),
        i=span(path["score"]["low"], path["score"]["high"], metric),
    )
