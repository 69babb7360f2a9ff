"""Drawings of measured claims, docs/claims/<form>.svg: one of each form, made of the same records as the page.

The first panels have the effects of all claims of the form, one axis for each figure and logarithmic for quotients;
a tick is what the claim requires. Then, of claims with more than a system and a baseline in a metric, what was measured
of each stage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pipelines.reports.elements.axes import count
from pipelines.reports.elements.intervals import Panel, PlottedInterval, draw_panels
from pipelines.reports.elements.wording import capital, metric_name
from tasks.records.claims_page import dataset_names, effect, figure_name, form_of, number, title

STYLES = {"reproduced": "good", "not reproduced": "bad"}
"""Verdict → colour; that of any other is `unsure`."""
WIDE = 10.0
"""Largest value over the smallest from which on figures above zero are drawn on a logarithmic axis."""


def drawings(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Form → the text of its drawing."""
    forms: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        forms.setdefault(form_of(record), []).append(record)
    return {
        form: draw_panels([*_effects(one), *map(_measured, _with_sides(one))], f"Claims of the form {form}")
        for form, one in sorted(forms.items())
    }


def _with_sides(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [record for record in records if "sides" in record]


def _effects(records: Sequence[Mapping[str, Any]]) -> list[Panel]:
    """Effects of claims, those of one unit on one axis."""
    axes: dict[str, list[PlottedInterval]] = {}
    ratios = {}
    for record in records:
        ratio = bool(record.get("ratio"))
        share = record.get("share", True)
        axis = "times better" if ratio else "difference" if share else f"difference in {metric_name(record['metric'])}"
        ratios[axis] = ratio
        axes.setdefault(axis, []).extend(_rows(record))
    return [
        Panel("Effects", axis, rows, _times if ratios[axis] else _signed, ratios[axis], 1.0 if ratios[axis] else 0.0)
        for axis, rows in axes.items()
    ]


def _rows(record: Mapping[str, Any]) -> list[PlottedInterval]:
    """The effects of a record."""
    name = f"{title(record)} · {dataset_names(record)}"
    if "effect" in record:
        measured = record["effect"]
        text = f"{measured['difference']:+.3f} [{measured['low']:+.3f}, {measured['high']:+.3f}] {record['verdict']}"
        ends = (measured["difference"], measured["low"], measured["high"])
        return [PlottedInterval(name, *ends, text, record["at_least"], STYLES.get(record["verdict"], "unsure"))]
    return [
        PlottedInterval(
            name if len(record["contrasts"]) == 1 else f"{title(record)}: {one['label']}",
            one["effect"],
            one["low"],
            one["high"],
            f"{effect(one, record)} {one['verdict']}",
            one["at_least"],
            STYLES.get(one["verdict"], "unsure"),
        )
        for one in record["contrasts"]
    ]


def _measured(record: Mapping[str, Any]) -> Panel:
    """What was measured of each stage of a claim."""
    rows = [
        PlottedInterval(
            side["stage"] + (f" on {side['judged']}" if "several" in record["data"] else ""),
            side["figure"]["mean"],
            side["figure"]["low"],
            side["figure"]["high"],
            f"{number(side['figure']['mean'], record)}",
        )
        for side in record["sides"]
    ]
    lows, highs = [row.low for row in rows], [row.high for row in rows]
    logarithmic = min(lows) > 0 and (bool(record["ratio"]) or max(highs) / min(lows) >= WIDE)
    axis = capital(figure_name(record)) + (f", {record['unit']}" if record["unit"] else "")
    tick: Callable[[float], str] = (lambda value: f"{value:g}") if record["share"] else count
    return Panel(f"{title(record)} on {dataset_names(record)}", axis, rows, tick, logarithmic)


def _times(value: float) -> str:
    return f"{value:g} times"


def _signed(value: float) -> str:
    return f"{value:+g}".replace("-", "−") if value else "0"
