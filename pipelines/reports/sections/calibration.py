"""Calibration of models, scores by slice and class, their most confident errors, and perplexity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.reports.elements.axes import percent, points
from pipelines.reports.elements.reliability import draw_reliability
from pipelines.reports.elements.table import Column, Table, estimate, number, text
from pipelines.reports.elements.wording import capital, metric_name
from pipelines.reports.sections import Report, Section

LONGEST = 240
"""Most characters that are shown of a text."""
PARTS = {
    "length": "Length in characters",
    "unknown_words": "Words absent from the training examples, %",
    "source": "Source",
}
"""Criterion by which examples are sliced → its heading."""


class CalibrationSection(Section, name="calibration"):
    """Calibration, slices, errors and perplexity."""

    title = "Calibration and errors"

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
            finding = "overconfident" if gap["low"] > 0 else "underconfident" if gap["high"] < 0 else None
            verdict = (
                f"{last['stage']} is {finding} by {points(abs(gap['mean'])).lstrip('+')} points"
                if finding
                else f"{last['stage']} is neither significantly overconfident nor underconfident"
            )
            lines.append(
                f"{verdict}; its calibration error is {percent(error['mean'])}, where a perfectly calibrated model "
                f"shows up to {percent(error['by_chance'])} by chance."
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
        "Calibration",
        (
            text("stage", "Model"),
            estimate("accuracy", "Accuracy", "accuracy"),
            estimate("confidence", "Confidence", "confidence"),
            estimate("equal_mass", "Error, equal mass", "ece"),
            number("by_chance", "By chance, up to", percent),
            estimate("equal_width", "Error, equal width", "ece"),
            Column("brier", "Brier score", _plain, right=True, parts=("mean", "low", "high")),
        ),
        rows,
    )
    yield Table(
        f"{evaluate_stage}-reliability",
        "Reliability diagrams",
        (
            text("stage", "Model"),
            number("confidence", "Mean confidence", percent),
            number("accuracy", "Accuracy", percent),
            number("low", "From", percent),
            number("high", "To", percent),
            number("answers", "Answers"),
        ),
        [{"stage": one["stage"], **point} for one in section["stages"] for point in one["diagram"]],
    )


def _sliced(section: Mapping[str, Any]) -> Iterator[Table]:
    evaluate_stage, metric = section["evaluate_stage"], section["metric"]
    for part in section["slices"]:
        stages = dict.fromkeys(stage for group in part["groups"] for stage in group["stages"])
        yield Table(
            f"{evaluate_stage}-{part['by']}",
            PARTS[part["by"]],
            (
                text("name", PARTS[part["by"]]),
                number("examples", "Examples"),
                *(estimate(stage, f"{stage}, {metric_name(metric)}", metric) for stage in stages),
            ),
            [{**group, **group["stages"]} for group in part["groups"]],
        )
    if section["classes"]:
        stages = dict.fromkeys(stage for one in section["classes"] for stage in one["stages"])
        yield Table(
            f"{evaluate_stage}-classes",
            "Classes",
            (
                text("label", "Class"),
                number("examples", "Examples"),
                *(Column(stage, stage, _of_class, right=True, parts=("precision", "recall", "f1")) for stage in stages),
            ),
            [{**one, **one["stages"]} for one in section["classes"]],
        )


def _wrong(section: Mapping[str, Any]) -> Iterator[Table]:
    for one in section["stages"]:
        has_confidence = any(error["confidence"] is not None for error in one["errors"])
        yield Table(
            f"{section['evaluate_stage']}-errors-{one['stage']}",
            f"{one['stage']}: {one['wrong']} of {section['examples']} wrong",
            (
                number("index", "Row"),
                Column("text", "Text", _cut),
                Column("right", "Reference", _cut),
                Column("given", "Prediction", _cut),
                number("confidence", "Confidence", percent) if has_confidence else number("score", "Score", percent),
            ),
            one["errors"],
        )


def _predicted(section: Mapping[str, Any]) -> Table:
    name = capital(section["perplexity"].replace("_", "-"))
    return Table(
        f"{section['evaluate_stage']}-{section['perplexity']}",
        name,
        (
            text("stage", "Model"),
            number("tokens", "Tokens"),
            number("unknown", "Unknown words", percent),
            Column("perplexity", f"{name} per token", _plain, right=True, parts=("mean", "low", "high")),
            Column("bits_per_byte", "Bits per byte", _plain, right=True, parts=("mean", "low", "high")),
        ),
        section["stages"],
    )


def _plain(value: Mapping[str, float]) -> str:
    digits = 1 if value["mean"] >= 10 else 3
    mean, low, high = (f"{value[end]:,.{digits}f}" for end in ("mean", "low", "high"))
    return f"{mean} ({low} to {high})"


def _of_class(value: Mapping[str, float]) -> str:
    return f"F1 {percent(value['f1'])} ({percent(value['precision'])}, {percent(value['recall'])})"


def _cut(value: str) -> str:
    return value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
