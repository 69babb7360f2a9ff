"""Forgetting of general text, stage by stage along the lineage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.messages.translation import message, template, translatable
from pipelines.reports.elements.layers import PlottedLine, draw_lines
from pipelines.reports.elements.table import Column, Table, difference, estimate, text, verdict
from pipelines.reports.elements.wording import capital, listing, metric_name, score
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.sections import Report, Section
from pipelines.reports.sections.probe_results import read_probe_results

LOSS = "loss"
FORGOTTEN = {
    "worse": translatable(
        "From {first} to {last} the models forgot general text: {before} nats per token on held-out text, then {after} "
        "({difference}, 95 % interval {low} to {high})."
    ),
    "better": translatable(
        "From {first} to {last} the models improved on general text: {before} nats per token on held-out text, then "
        "{after} ({difference}, 95 % interval {low} to {high})."
    ),
}
"""Verdict of the change of the loss → the sentence about it."""
NEITHER = translatable(
    "From {first} to {last} the models neither significantly forgot nor improved on general text: {before} nats per "
    "token on held-out text, then {after} ({difference}, 95 % interval {low} to {high})."
)


class ForgettingSection(Section, name="forgetting"):
    """The loss on held-out general text, and probing tasks of sentences, after every stage of the lineage."""

    title = translatable("Forgetting")

    def section_data(self, report: Report) -> dict[str, Any] | None:
        probed = read_probe_results(report, "boundaries")
        return {"meters": [_described(stage, section) for stage, _, section in probed]} if probed else None

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        return [sentence for one in content["meters"] for sentence in _sentences(one["section"])]

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        return [table for one in content["meters"] for table in one["tables"].values()]


def _described(stage: str, section: Mapping[str, Any]) -> dict[str, Any]:
    boundaries = section["boundaries"]
    stages = [one["stage"] for one in boundaries]
    losses = [one.get(LOSS) for one in boundaries]
    tasks = [metric for metric in section["metrics"] if metric != LOSS]
    label = message("Loss on held-out general text, stage by stage")
    return {
        "stage": stage,
        "section": section,
        "loss": draw_lines([PlottedLine(message("loss"), losses)], stages, LOSS, label) if any(losses) else None,
        "tasks": [
            {
                "title": capital(metric_name(task)),
                "svg": draw_lines(
                    [
                        PlottedLine(message("chance"), [_level(section["chances"][task])] * len(stages), chance=True),
                        PlottedLine(task, [one.get(task) for one in boundaries]),
                    ],
                    stages,
                    "accuracy",
                    message("{measure}, stage by stage", measure=capital(metric_name(task))),
                    width=300,
                ),
            }
            for task in tasks
        ],
        "silent": [(one["stage"], template(one["way"])) for one in boundaries if LOSS not in one],
        "tables": _tables(stage, section, tasks),
    }


def _level(value: float) -> dict[str, float]:
    return {"mean": value, "low": value, "high": value}


def _tables(stage: str, section: Mapping[str, Any], tasks: list[str]) -> dict[str, Table]:
    shown = [(LOSS, LOSS), *((task, "accuracy") for task in tasks)]
    rows = [
        {
            "compared": f"{one['from']} → {one['to']}",
            "measured": message("Loss") if metric == LOSS else capital(metric_name(metric)),
            "loss": one[metric] if metric == LOSS else None,
            "accuracy": one[metric] if metric != LOSS else None,
            "verdict": one[metric]["verdict"],
        }
        for one in [*section["changes"], *_since_first(section)]
        for metric, _ in shown
        if metric in one
    ]
    return {
        "boundaries": Table(
            f"{stage}-boundaries",
            message("At the end of every stage"),
            (
                text("stage", message("Stage")),
                Column("way", message("Measured by"), template),
                *(estimate(metric, capital(metric_name(metric)), form) for metric, form in shown),
            ),
            section["boundaries"],
        ),
        "changes": Table(
            f"{stage}-changes",
            message("From stage to stage"),
            (
                text("compared", message("Compared")),
                text("measured", message("Measured")),
                verdict("verdict"),
                difference("loss", message("Nats per token"), LOSS),
                difference("accuracy", message("Points of accuracy"), "accuracy"),
            ),
            rows,
        ),
    }


def _since_first(section: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The last boundary against the first, where more than one step lies between them."""
    first, last = section["boundaries"][0], section["boundaries"][-1]
    if len(section["boundaries"]) < 3:
        return []
    return [{"from": first["stage"], "to": last["stage"], **last["since_first"]}]


def _sentences(section: Mapping[str, Any]) -> list[str]:
    """The forgetting between the first and the last stage that predict the same tokens."""
    first = section["boundaries"][0]
    lines = []
    measured = [one for one in section["boundaries"] if LOSS in one.get("since_first", {})]
    if measured:
        last = measured[-1]
        change = last["since_first"][LOSS]
        lines.append(
            message(
                FORGOTTEN.get(change["verdict"], NEITHER),
                first=first["stage"],
                last=last["stage"],
                before=score(first[LOSS]["mean"], LOSS),
                after=score(last[LOSS]["mean"], LOSS),
                difference=written(change["difference"], LOSS),
                low=written(change["low"], LOSS),
                high=written(change["high"], LOSS),
            )
        )
    last = section["boundaries"][-1]
    lost = [task for task, one in last.get("since_first", {}).items() if task != LOSS and one["verdict"] == "worse"]
    if lost:
        lines.append(
            message(
                "After {last}, it is harder than after {first} to predict from sentence vectors: {tasks}.",
                last=last["stage"],
                first=first["stage"],
                tasks=listing(metric_name(task) for task in lost),
            )
        )
    return lines
