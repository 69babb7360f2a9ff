"""Ranking: where models put the right choice among many candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.messages.translation import message, translatable
from pipelines.reports.elements.axes import percent
from pipelines.reports.elements.scores import PlottedScore, draw_scores
from pipelines.reports.elements.table import Table, estimate, text
from pipelines.reports.elements.wording import capital, metric_name
from pipelines.reports.sections import Report, Section

FIRST = "reciprocal_rank"
"""The figure that is drawn, and by which models are ordered."""


class RankingSection(Section, name="ranking"):
    """Mean reciprocal rank and recall of each model, beside a random order."""

    title = translatable("Ranking")

    def section_data(self, report: Report) -> dict[str, Any] | None:
        sections = [
            {**section, "evaluate_stage": stage, "drawn": _drawn(section)}
            for stage, section in report.sections("ranked")
        ]
        return {"sections": sections} if sections else None

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        lines = []
        for section in content["sections"]:
            best = max(section["ranked"], key=lambda model: float(model[FIRST]["mean"]))
            share = best[FIRST]
            lines.append(
                message(
                    "Of {candidates} candidates for each of {questions} questions, {model} ranks the right one at a "
                    "mean reciprocal rank of {share} (95 % interval {low} to {high}; by chance {chance}).",
                    candidates=section["candidates"],
                    questions=section["questions"],
                    model=best["stage"],
                    share=percent(share["mean"]),
                    low=percent(share["low"]),
                    high=percent(share["high"]),
                    chance=percent(section["chance"][FIRST]),
                )
            )
        return lines

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        return [_table(section) for section in content["sections"]]


def _table(section: Mapping[str, Any]) -> Table:
    return Table(
        f"{section['evaluate_stage']}-ranking",
        message("Rank of the right choice"),
        (
            text("stage", message("Model")),
            *(estimate(name, capital(metric_name(name)), name) for name in section["chance"]),
        ),
        section["ranked"],
    )


def _drawn(section: Mapping[str, Any]) -> str:
    chance = section["chance"][FIRST]
    rows = [PlottedScore(message("chance"), chance, chance, chance, (), baseline=True)]
    for model in section["ranked"]:
        one = model[FIRST]
        rows.append(PlottedScore(model["stage"], one["mean"], one["low"], one["high"], tuple(one["per_seed"])))
    return draw_scores(rows, FIRST)
