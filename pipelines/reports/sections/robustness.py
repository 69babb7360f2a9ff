"""Scores on attacked examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.messages.translation import message, translatable
from pipelines.reports.elements.axes import percent
from pipelines.reports.elements.scores import PlottedScore, draw_scores
from pipelines.reports.elements.table import Column, Table, difference, estimate, number, text, verdict
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.elements.wording import measured_in, metric_name, plain, score
from pipelines.reports.sections import Report, Section

LONGEST = 220
"""Most characters that are shown of an example."""
CLEAN = translatable("no attack")


class RobustnessSection(Section, name="robustness"):
    """Clean and attacked scores side by side."""

    title = translatable("Robustness")

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
                    message(
                        "No attack lowers the score of {model} significantly on {examples} examples.",
                        model=last["stage"],
                        examples=section["examples"],
                    )
                )
                continue
            worst = min(costly, key=lambda name: float(last["loss"][name][metric]["difference"]))
            lost = last["loss"][worst][metric]
            low, high = (written(lost[end], metric) for end in ("low", "high"))
            before, after = (one[metric]["mean"] for one in (last["clean"], last["attacked"][worst]))
            lines.append(
                message(
                    "{costly} of {attacks} attacks lower the score of {model} significantly, {worst} most: "
                    "{difference} {unit} ({low} to {high}), from {before} to {after}.",
                    costly=len(costly),
                    attacks=len(section["attacks"]),
                    model=last["stage"],
                    worst=plain(worst),
                    difference=written(lost["difference"], metric),
                    unit=measured_in(metric),
                    low=low,
                    high=high,
                    before=score(before, metric),
                    after=score(after, metric),
                )
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
        message("Clean and attacked"),
        (
            Column("attack", message("Attack"), plain),
            number("changed", message("Examples changed"), percent),
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
        message("Loss by each attack"),
        (
            text("stage", message("Model")),
            Column("attack", message("Attack"), plain),
            verdict("verdict"),
            difference("loss", message("Difference, {unit}", unit=measured_in(metric)), metric),
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
        message("Examples of attacks"),
        (
            Column("attack", message("Attack"), plain),
            Column("clean", message("Clean"), _cut),
            Column("attacked", message("Attacked"), _cut),
        ),
        section["shown"],
    )


def _drawn(stage: Mapping[str, Any], metric: str) -> str:
    scores = {CLEAN: stage["clean"], **stage["attacked"]}
    rows = [
        PlottedScore(
            plain(name),
            one[metric]["mean"],
            one[metric]["low"],
            one[metric]["high"],
            tuple(one[metric]["per_seed"]),
            name == CLEAN,
        )
        for name, one in scores.items()
    ]
    return draw_scores(rows, metric)


def _cut(value: str) -> str:
    return value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
