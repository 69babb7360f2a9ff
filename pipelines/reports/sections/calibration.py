"""Calibration of models, scores by slice and class, their most confident errors, and perplexity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from markupsafe import Markup

from pipelines.messages.translation import message, translatable
from pipelines.reports.elements.axes import percent, points
from pipelines.reports.elements.reliability import draw_reliability
from pipelines.reports.elements.table import Column, Table, estimate, number, text
from pipelines.reports.elements.wording import capital, metric_name
from pipelines.reports.sections import Report, Section

LONGEST = 240
"""Most characters that are shown of a text."""
PARTS = {
    "length": translatable("Length in characters"),
    "unknown_words": translatable("Words absent from the training examples, %"),
    "source": translatable("Source"),
}
"""Criterion by which examples are sliced → its heading."""
FINDINGS = {
    "over": translatable("{model} is overconfident by {points} points"),
    "under": translatable("{model} is underconfident by {points} points"),
    "neither": translatable("{model} is neither significantly overconfident nor underconfident"),
}
"""Side of the confidence on which the interval of its error lies → the sentence about it."""


class CalibrationSection(Section, name="calibration"):
    """Calibration, slices, errors and perplexity."""

    title = translatable("Calibration and errors")

    def section_data(self, report: Report) -> dict[str, Any] | None:
        content = {
            key: [
                {**section, "evaluate_stage": stage, "several": len(report.sections(key)) > 1}
                for stage, section in report.sections(key)
            ]
            for key in ("ece", "slices", "errors", "perplexity")
        }
        for section in content["ece"]:
            section["drawn"] = [
                {
                    "stage": one["stage"],
                    "colour": at % 8,
                    "svg": draw_reliability(one["diagram"], one["stage"], at),
                }
                for at, one in enumerate(section["stages"])
            ]
        return content if any(content.values()) else None

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        lines = []
        for section in content["ece"]:
            last = section["stages"][-1]
            gap, error = last["overconfidence"], last["ece"]["equal_mass"]
            finding = "over" if gap["low"] > 0 else "under" if gap["high"] < 0 else "neither"
            verdict = message(FINDINGS[finding], model=last["stage"], points=points(abs(gap["mean"])).removeprefix("+"))
            lines.append(
                message(
                    "{verdict}; its calibration error is {error}, where a perfectly calibrated model shows up to "
                    "{by_chance} by chance.",
                    verdict=verdict,
                    error=percent(error["mean"]),
                    by_chance=percent(error["by_chance"]),
                )
            )
        return lines

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        return [
            *(table for section in content["ece"] for table in _calibrated(section)),
            *(table for section in content["slices"] for table in _sliced(section)),
            *(table for section in content["errors"] for table in _wrong(section)),
            *(_predicted(section) for section in content["perplexity"]),
        ]


def _calibrated(section: Mapping[str, Any]) -> Iterator[Table]:
    evaluate_stage = section["evaluate_stage"]
    rows = [{**one, **one["ece"], "by_chance": one["ece"]["equal_mass"]["by_chance"]} for one in section["stages"]]
    yield Table(
        f"{evaluate_stage}-calibration",
        message("Calibration"),
        (
            text("stage", message("Model")),
            estimate("accuracy", message("Accuracy"), "accuracy"),
            estimate("confidence", message("Confidence"), "confidence"),
            estimate("equal_mass", message("Error, equal mass"), "ece"),
            number("by_chance", message("By chance, up to"), percent),
            estimate("equal_width", message("Error, equal width"), "ece"),
            Column("brier", message("Brier score"), _plain, right=True, parts=("mean", "low", "high")),
        ),
        rows,
    )
    yield Table(
        f"{evaluate_stage}-reliability",
        message("Reliability diagrams"),
        (
            text("stage", message("Model")),
            number("confidence", message("Mean confidence"), percent),
            number("accuracy", message("Accuracy"), percent),
            number("low", message("Lower bound"), percent),
            number("high", message("Upper bound"), percent),
            number("answers", message("Answers")),
        ),
        [{"stage": one["stage"], **point} for one in section["stages"] for point in one["diagram"]],
    )


def _sliced(section: Mapping[str, Any]) -> Iterator[Table]:
    evaluate_stage, metric = section["evaluate_stage"], section["metric"]
    for part in section["slices"]:
        stages = dict.fromkeys(stage for group in part["groups"] for stage in group["stages"])
        yield Table(
            f"{evaluate_stage}-{part['by']}",
            message(PARTS[part["by"]]),
            (
                text("name", message(PARTS[part["by"]])),
                number("examples", message("Examples")),
                *(estimate(stage, f"{stage}, {metric_name(metric)}", metric) for stage in stages),
            ),
            [{**group, **group["stages"]} for group in part["groups"]],
        )
    if section["classes"]:
        stages = dict.fromkeys(stage for one in section["classes"] for stage in one["stages"])
        yield Table(
            f"{evaluate_stage}-classes",
            message("Classes"),
            (
                text("label", message("Class")),
                number("examples", message("Examples")),
                *(Column(stage, stage, _of_class, right=True, parts=("precision", "recall", "f1")) for stage in stages),
            ),
            [{**one, **one["stages"]} for one in section["classes"]],
        )


def _wrong(section: Mapping[str, Any]) -> Iterator[Table]:
    for one in section["stages"]:
        has_confidence = any(error["confidence"] is not None for error in one["errors"])
        yield Table(
            f"{section['evaluate_stage']}-errors-{one['stage']}",
            message(
                "{stage}: {wrong} of {examples} wrong",
                stage=one["stage"],
                wrong=one["wrong"],
                examples=section["examples"],
            ),
            (
                number("index", message("Row")),
                Column("text", message("Text"), _cut),
                Column("right", message("Reference"), _cut),
                Column("given", message("Prediction"), _cut),
                number("confidence", message("Confidence"), percent)
                if has_confidence
                else number("score", message("Score"), percent),
            ),
            one["errors"],
        )


def _predicted(section: Mapping[str, Any]) -> Table:
    name = capital(metric_name(section["perplexity"]))
    return Table(
        f"{section['evaluate_stage']}-{section['perplexity']}",
        name,
        (
            text("stage", message("Model")),
            number("tokens", message("Tokens")),
            number("unknown", message("Unknown words"), percent),
            Column(
                "perplexity",
                message("{measure} per token", measure=name),
                _plain,
                right=True,
                parts=("mean", "low", "high"),
            ),
            Column("bits_per_byte", message("Bits per byte"), _plain, right=True, parts=("mean", "low", "high")),
        ),
        section["stages"],
    )


def _plain(value: Mapping[str, float]) -> Markup:
    digits = 1 if value["mean"] >= 10 else 3
    mean, low, high = (f"{value[end]:,.{digits}f}" for end in ("mean", "low", "high"))
    interval = message("{low} to {high}", low=low, high=high)
    return Markup('{mean} <span class="range">{interval}</span>').format(mean=mean, interval=interval)


def _of_class(value: Mapping[str, float]) -> str:
    return f"F1 {percent(value['f1'])} ({percent(value['precision'])}, {percent(value['recall'])})"


def _cut(value: str) -> str:
    return value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
