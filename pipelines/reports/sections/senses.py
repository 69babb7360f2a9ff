"""Senses of words in context: whether the nearest occurrence of a word means the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.messages.translation import message, translatable
from pipelines.reports.elements.axes import percent
from pipelines.reports.elements.scores import PlottedScore, draw_scores
from pipelines.reports.elements.table import Table, estimate, number, text
from pipelines.reports.sections import Report, Section

METRIC = "accuracy"
"""The metric whose wording a share has."""


class SensesSection(Section, name="senses"):
    """Agreement of senses for each model, by layer, by word, and examples."""

    title = translatable("Words in context")

    def section_data(self, report: Report) -> dict[str, Any] | None:
        sections = [
            {**section, "evaluate_stage": stage, "drawn": _drawn(section)}
            for stage, section in report.sections("senses")
        ]
        return {"sections": sections} if sections else None

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        lines = []
        for section in content["sections"]:
            best = max(section["models"], key=lambda model: float(model["agreement"]["mean"]))
            agreement = best["agreement"]
            lines.append(
                message(
                    "Of {sentences} sentences with {words} ambiguous words, {model} puts {share} next to one of the "
                    "same sense (95 % interval {low} to {high}; by chance {chance}).",
                    sentences=section["sentences"],
                    words=section["words"],
                    model=best["stage"],
                    share=percent(agreement["mean"]),
                    low=percent(agreement["low"]),
                    high=percent(agreement["high"]),
                    chance=percent(section["chance"]),
                )
            )
        return lines

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        return [table for section in content["sections"] for table in _tables(section)]


def _tables(section: Mapping[str, Any]) -> Iterator[Table]:
    models, prefix = section["models"], section["evaluate_stage"]
    deepest = max(len(model["layers"]) for model in models)
    yield Table(
        f"{prefix}-senses",
        message("Nearest occurrences in the same sense"),
        (
            text("stage", message("Model")),
            estimate("agreement", message("Same sense"), METRIC),
            *(number(f"layer {layer}", message("Layer {layer}", layer=layer), percent) for layer in range(deepest)),
        ),
        [
            {
                "stage": model["stage"],
                "agreement": model["agreement"],
                **{f"layer {layer}": share for layer, share in enumerate(model["layers"])},
            }
            for model in models
        ],
    )
    yield Table(
        f"{prefix}-words",
        message("Words"),
        (text("word", message("Word")), *(number(model["stage"], model["stage"], percent) for model in models)),
        [
            {"word": word, **{model["stage"]: model["words"][word] for model in models}}
            for word in section["models"][0]["words"]
        ],
    )
    best = max(models, key=lambda model: float(model["agreement"]["mean"]))
    yield Table(
        f"{prefix}-nearest",
        message("Nearest sentences in {model}", model=best["stage"]),
        (
            text("word", message("Word")),
            text("sense", message("Sense")),
            text("text", message("Sentence")),
            text("nearest", message("Nearest")),
            text("nearest_sense", message("Its sense")),
        ),
        best["shown"],
    )


def _drawn(section: Mapping[str, Any]) -> str:
    chance = section["chance"]
    rows = [PlottedScore(message("chance"), chance, chance, chance, (), baseline=True)]
    for model in section["models"]:
        one = model["agreement"]
        rows.append(PlottedScore(model["stage"], one["mean"], one["low"], one["high"], tuple(one["per_seed"])))
    return draw_scores(rows, METRIC)
