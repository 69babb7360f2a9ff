"""Forgetting of general text, stage by stage along the lineage."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.reports.elements.layers import PlottedLine, draw_lines
from pipelines.reports.elements.table import Table, difference, estimate, text, verdict
from pipelines.reports.elements.wording import capital, metric_name, score
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.sections import Report, Section
from pipelines.reports.sections.probe_results import read_probe_results

LOSS = "loss"


class ForgettingSection(Section, name="forgetting"):
    """The loss on held-out general text, and probing tasks of sentences, after every stage of the lineage."""

    title = "Forgetting"

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
    return {
        "stage": stage,
        "section": section,
        "loss": draw_lines([PlottedLine(LOSS, losses)], stages, LOSS, "Loss on held-out general text, stage by stage")
        if any(losses)
        else None,
        "tasks": [
            {
                "title": capital(metric_name(task)),
                "svg": draw_lines(
                    [
                        PlottedLine("chance", [_level(section["chances"][task])] * len(stages), chance=True),
                        PlottedLine(task, [one.get(task) for one in boundaries]),
                    ],
                    stages,
                    "accuracy",
                    f"{capital(metric_name(task))}, stage by stage",
                    width=300,
                ),
            }
            for task in tasks
        ],
        "silent": [(one["stage"], one["way"]) for one in boundaries if LOSS not in one],
        "tables": _tables(stage, section, tasks),
    }


def _level(value: float) -> dict[str, float]:
    return {"mean": value, "low": value, "high": value}


def _tables(stage: str, section: Mapping[str, Any], tasks: list[str]) -> dict[str, Table]:
    shown = [(LOSS, LOSS), *((task, "accuracy") for task in tasks)]
    rows = [
        {
            "compared": f"{one['from']} → {one['to']}",
            "measured": "Loss" if metric == LOSS else capital(metric_name(metric)),
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
            "At the end of every stage",
            (
                text("stage", "Stage"),
                text("way", "Measured by"),
                *(estimate(metric, capital(metric_name(metric)), form) for metric, form in shown),
            ),
            section["boundaries"],
        ),
        "changes": Table(
            f"{stage}-changes",
            "From stage to stage",
            (
                text("compared", "Compared"),
                text("measured", "Measured"),
                difference("loss", "Nats per token", LOSS),
                difference("accuracy", "Points of accuracy", "accuracy"),
                verdict("verdict"),
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
        does = {"worse": "forgot", "better": "improved on"}.get(
            change["verdict"], "neither significantly forgot nor improved on"
        )
        lines.append(
            f"From {first['stage']} to {last['stage']} the models {does} general text: "
            f"{score(first[LOSS]['mean'], LOSS)} nats per token on held-out text, then "
            f"{score(last[LOSS]['mean'], LOSS)} ({written(change['difference'], LOSS)}, 95 % interval "
            f"{written(change['low'], LOSS)} to {written(change['high'], LOSS)})."
        )
    last = section["boundaries"][-1]
    lost = [task for task, one in last.get("since_first", {}).items() if task != LOSS and one["verdict"] == "worse"]
    if lost:
        lines.append(
            f"After {last['stage']}, {' and '.join(metric_name(task) for task in lost)} "
            f"{'is' if len(lost) == 1 else 'are'} harder to predict from sentence vectors than after {first['stage']}."
        )
    return lines
