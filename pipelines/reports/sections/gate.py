"""The page of a promotion: the compared models, every criterion with its reason, and the decision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup

from pipelines.messages.translation import message, template, translatable
from pipelines.reports.elements.axes import Scale, horizontal_axis, ticks
from pipelines.reports.elements.table import Column, Table, text
from pipelines.reports.elements.wording import listing, plain
from pipelines.reports.sections import Report, Section

COLOURS = {
    translatable("met"): "good",
    translatable("missed"): "bad",
    translatable("undecided"): "unsure",
    "GO": "good",
    "NO-GO": "bad",
    "INCONCLUSIVE": "unsure",
}
"""Outcome or verdict → CSS class of its colour."""
SHORT = 12
"""Digits of a fingerprint that are shown."""


class GateSection(Section, name="gate"):
    """The criteria and the decision of a promotion: an execution whose record has `criteria`."""

    title = translatable("Gate")

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
        alias, dataset = content["alias"], content["dataset"]
        opponent = (
            message("the {alias} {model}", alias=alias, model=against["label"])
            if against
            else message("no {alias} yet", alias=alias)
        )
        each = listing(
            message("{examples} of {task}", examples=one["examples"], task=one["task"])
            for one in content.get("tasks", ())
        )
        on = (
            message("the test examples of {dataset} ({each})", dataset=dataset, each=each)
            if each
            else message("the {examples} test examples of {dataset}", examples=content["examples"], dataset=dataset)
        )
        return [
            message(
                "{verdict}: {candidate} against {opponent}, on {examples}.",
                verdict=content["verdict"],
                candidate=content["candidate"]["label"],
                opponent=opponent,
                examples=on,
            )
        ]

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        sides = [(message("candidate"), content["candidate"]), (content["alias"], content["champion"])]
        criteria = Table(
            "criteria",
            message("Criteria"),
            (
                text("criterion", message("Criterion")),
                Column("outcome", message("Outcome"), coloured),
                text("reason", message("Reason")),
            ),
            [{**one, "criterion": titled(one)} for one in content["outcomes"]],
        )
        models = Table(
            "models",
            message("Models"),
            (
                text("role", message("Role")),
                text("recipe", message("Recipe")),
                text("label", message("Stage")),
                Column("fingerprint", message("Fingerprint"), _short),
            ),
            [{"role": role, **side} for role, side in sides if side is not None],
        )
        return [criteria, models, *_decisions(content)]


def titled(outcome: Mapping[str, Any]) -> str:
    """The criterion of an outcome, and the task where models of several are judged."""
    criterion = plain(str(outcome["criterion"]))
    if outcome.get("task"):
        return message("{criterion} on {task}", criterion=criterion, task=outcome["task"])
    return criterion


def coloured(word: str) -> Markup:
    """An outcome or a verdict as coloured markup."""
    return Markup('<span class="verdict {c}">{w}</span>').format(
        c=COLOURS.get(word, "note"), w=template(word) if word in COLOURS else word
    )


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
    title = message(
        "{criterion}: {value:g}, interval {low:g} to {high:g}, threshold {threshold:g}",
        criterion=plain(str(outcome["criterion"])),
        value=measured["value"],
        low=measured["low"],
        high=measured["high"],
        threshold=measured["border"],
    )
    return Markup('<svg viewBox="0 0 {w} {h}" role="img" aria-label="{s}"><title>{s}</title>{p}</svg>').format(
        w=width, h=bottom + 26, s=title, p=Markup("").join(parts)
    )


def _decisions(content: Mapping[str, Any]) -> list[Table]:
    decision = content["decision"]
    if decision is None:
        return []
    columns = (
        text("action", message("Decision")),
        text("decided_by", message("Decided by")),
        text("at", message("Decided at")),
        text("reason", message("Reason")),
    )
    return [Table("decision", message("Decision"), columns, [decision])]


def _short(fingerprint: str) -> Markup:
    return Markup('<code title="{whole}">{short}</code>').format(whole=fingerprint, short=fingerprint[:SHORT])
