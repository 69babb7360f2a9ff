"""Scores on attacked examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.reports.elements.axes import percent
from pipelines.reports.elements.scores import PlottedScore, draw_scores
from pipelines.reports.elements.table import Column, Table, difference, estimate, number, text, verdict
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.elements.wording import measured_in, metric_name, score
from pipelines.reports.sections import Report, Section

LONGEST = 220
"""Most characters that are shown of an example."""
CLEAN = "no attack"


class RobustnessSection(Section, name="robustness"):
    """Clean and attacked scores side by side."""

    title = "Robustness"

    def section_data(self, report: Report) -> dict[str, Any] | None:
        sections = [
            {
                **section,
                "evaluate_stage": stage,
                "metric_name": metric_name(section["metric"]),
                "drawn": [{"stage": one["stage"], "svg": _drawn(one, section["metric"])} for one in section["stages"]],
            }
            for stage, section in report.sections("attacks")
        ]
        return {"sections": sections} if sections else None

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        lines = []
        for section in content["sections"]:
            metric, last = section["metric"], section["stages"][-1]
            costly = [name for name in section["attacks"] if last["loss"][name][metric]["high"] < 0]
            if not costly:
                lines.append(
                    f"No attack lowers the score of {last['stage']} significantly on {section['examples']} examples."
                )
                continue
            worst = min(costly, key=lambda name: float(last["loss"][name][metric]["difference"]))
            lost = last["loss"][worst][metric]
            low, high = (written(lost[end], metric) for end in ("low", "high"))
            before, after = (one[metric]["mean"] for one in (last["clean"], last["attacked"][worst]))
            lines.append(
                f"{len(costly)} of {len(section['attacks'])} attacks lower the score of {last['stage']} significantly, "
                f"{_plain(worst)} most: {written(lost['difference'], metric)} {measured_in(metric)} ({low} to {high}), "
                f"from {score(before, metric)} to {score(after, metric)}."
            )
        return lines

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        return [table for section in content["sections"] for table in _tables(section)]


def _tables(section: Mapping[str, Any]) -> Iterator[Table]:
    metric, evaluate_stage = section["metric"], section["evaluate_stage"]
    stages = [one["stage"] for one in section["stages"]]
    clean = {one["stage"]: one["clean"][metric] for one in section["stages"]}
    yield Table(
        f"{evaluate_stage}-attacked",
        "Clean and attacked",
        (
            Column("attack", "Attack", _plain),
            number("changed", "Examples changed", percent),
            *(estimate(stage, stage, metric) for stage in stages),
        ),
        [
            {"attack": CLEAN, **clean},
            *(
                {
                    "attack": name,
                    "changed": section["changed"][name],
                    **{one["stage"]: one["attacked"][name][metric] for one in section["stages"]},
                }
                for name in section["attacks"]
            ),
        ],
    )
    yield Table(
        f"{evaluate_stage}-losses",
        "Loss by each attack",
        (
            text("stage", "Model"),
            Column("attack", "Attack", _plain),
            difference("loss", f"Difference, {measured_in(metric)}", metric),
            verdict("verdict"),
        ),
        [
            {
                "stage": one["stage"],
                "attack": name,
                "loss": one["loss"][name][metric],
                "verdict": one["loss"][name][metric]["verdict"],
            }
            for one in section["stages"]
            for name in section["attacks"]
        ],
    )
    yield Table(
        f"{evaluate_stage}-examples",
        "Examples of attacks",
        (Column("attack", "Attack", _plain), Column("clean", "Clean", _cut), Column("attacked", "Attacked", _cut)),
        section["shown"],
    )


def _drawn(stage: Mapping[str, Any], metric: str) -> str:
    scores = {CLEAN: stage["clean"], **stage["attacked"]}
    rows = [
        PlottedScore(
            _plain(name),
            one[metric]["mean"],
            one[metric]["low"],
            one[metric]["high"],
            tuple(one[metric]["per_seed"]),
            name == CLEAN,
        )
        for name, one in scores.items()
    ]
    return draw_scores(rows, metric)


def _plain(name: str) -> str:
    return name.replace("_", " ")


def _cut(value: str) -> str:
    return value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
