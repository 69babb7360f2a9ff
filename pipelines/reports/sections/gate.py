"""The page of a promotion: the compared models, every criterion with its reason, and the decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from pipelines.reports.elements.axes import Scale, horizontal_axis, ticks
from pipelines.reports.elements.table import Column, Table, text
from pipelines.reports.sections import Report, Section

COLOURS = {
    "met": "good",
    "missed": "bad",
    "undecided": "unsure",
    "GO": "good",
    "NO-GO": "bad",
    "INCONCLUSIVE": "unsure",
}
"""Outcome or verdict → CSS class of its colour."""
SHORT = 12
"""Digits of a fingerprint that are shown."""


class GateSection(Section, name="gate"):
    """The criteria and the decision of a promotion: an execution whose record has `criteria`."""

    title = "Gate"

    def section_data(self, report: Report) -> dict[str, Any] | None:
        criteria = report.execution.get("criteria")
        if criteria is None:
            return None
        promotion = report.execution["promotion"]
        measured = [one for one in criteria if "border" in one["evidence"]]
        return {
            **promotion,
            "coloured": coloured(promotion["verdict"]),
            "measured_by": promotion.get("tasks") or [{"task": None, "evidence": promotion["evidence"]}],
            "plots": [{"criterion": titled(one), "svg": draw(one)} for one in measured],
        }

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        against = content["champion"]
        opponent = f"the {content['alias']} {against['label']}" if against else f"no {content['alias']} yet"
        each = ", ".join(f"{one['examples']} of {one['task']}" for one in content.get("tasks", ()))
        on = (
            f"the test examples of {content['dataset']} ({each})"
            if each
            else f"the {content['examples']} test examples of {content['dataset']}"
        )
        return [f"{content['verdict']}: {content['candidate']['label']} against {opponent}, on {on}."]

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        sides = [("candidate", content["candidate"]), (content["alias"], content["champion"])]
        criteria = Table(
            "criteria",
            "Criteria",
            (text("criterion", "Criterion"), Column("outcome", "Outcome", coloured), text("reason", "Reason")),
            [{**one, "criterion": titled(one)} for one in content["outcomes"]],
        )
        models = Table(
            "models",
            "Models",
            (
                text("role", "Role"),
                text("recipe", "Recipe"),
                text("label", "Stage"),
                Column("fingerprint", "Fingerprint", _short),
            ),
            [{"role": role, **side} for role, side in sides if side is not None],
        )
        return [criteria, models, *_decisions(content)]


def titled(outcome: Mapping[str, Any]) -> str:
    """The criterion of an outcome, and the task where models of several are judged."""
    return f"{outcome['criterion']} on {outcome['task']}" if outcome.get("task") else str(outcome["criterion"])


def coloured(word: str) -> Markup:
    """An outcome or a verdict as coloured markup."""
    return Markup('<span class="verdict {c}">{w}</span>').format(c=COLOURS.get(word, "note"), w=word)


def draw(outcome: Mapping[str, Any]) -> Markup:
    """Draw a measured value with its interval, and the threshold, with the required side shaded."""
    measured = outcome["evidence"]
    width, left, right, top, bottom = 960, 24, 24, 8, 50
    every = [measured["low"], measured["high"], measured["value"], measured["border"]]
    margin = 0.12 * ((max(every) - min(every)) or abs(max(every)) or 1.0)
    x = Scale(min(every) - margin, max(every) + margin, left, width - right)
    edge, y = x(measured["border"]), (top + bottom) / 2
    start, end = (edge, width - right) if measured["above"] else (left, edge)
    parts = [
        Markup('<rect x="{a}" y="{t}" width="{w}" height="{h}" style="fill:var(--panel)"/>').format(
            a=start, t=top, w=round(end - start, 2), h=bottom - top
        ),
        horizontal_axis(x, ticks(x.first, x.last, 8), top, bottom, "{:g}".format),
        Markup('<line x1="{e}" x2="{e}" y1="{t}" y2="{b}" style="stroke:var(--ink);stroke-width:1.6"/>').format(
            e=edge, t=top, b=bottom
        ),
        Markup(
            '<g style="color:var(--{c})"><line class="interval" x1="{a}" x2="{z}" y1="{y}" y2="{y}"/>'
            '<circle class="mean" cx="{m}" cy="{y}" r="5.5"/></g>'
        ).format(
            c=COLOURS.get(outcome["outcome"], "muted"),
            a=x(measured["low"]),
            z=x(measured["high"]),
            m=x(measured["value"]),
            y=y,
        ),
    ]
    title = (
        f"{outcome['criterion']}: {measured['value']:g}, interval {measured['low']:g} to {measured['high']:g}, "
        f"threshold {measured['border']:g}"
    )
    return Markup('<svg viewBox="0 0 {w} {h}" role="img" aria-label="{s}"><title>{s}</title>{p}</svg>').format(
        w=width, h=bottom + 26, s=title, p=Markup("").join(parts)
    )


def _decisions(content: Mapping[str, Any]) -> list[Table]:
    decision = content["decision"]
    if decision is None:
        return []
    columns = (text("action", "Decision"), text("decided_by", "By"), text("at", "At"), text("reason", "Reason"))
    return [Table("decision", "Decision", columns, [decision])]


def _short(fingerprint: str) -> Markup:
    return Markup('<code title="{whole}">{short}</code>').format(whole=fingerprint, short=fingerprint[:SHORT])
