"""Comparison of our scores with published ones, with the ratio of the model sizes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from pipelines.lineage.weights import PLAIN_TEXT, weight_history
from pipelines.messages.translation import message, translatable
from pipelines.reports.elements.axes import count
from pipelines.reports.elements.table import Table, estimate, number, text
from pipelines.reports.elements.wording import listing, metric_name, score
from pipelines.reports.score_tables import score_tables
from pipelines.reports.sections import Report, Section

FAR = 2.0
"""Models whose sizes differ by more than this factor count as different in scale."""
WORDS = {
    "pretrain": translatable("general"),
    "adapt_domain": translatable("domain"),
    "adapt_task": translatable("task-adaptive"),
}


class PublishedSection(Section, name="anchors"):
    """Scores that papers report on this dataset, for models trained by the same kinds of stages."""

    title = translatable("Published figures")

    def section_data(self, report: Report) -> dict[str, Any] | None:
        rows = []
        first = {step["stage"]: step["fingerprint"] for step in reversed(report.execution["steps"])}
        anchors = [anchor for anchor in report.anchors if anchor.dataset == report.execution["dataset"]]
        for table in score_tables(report.evaluations):
            for row in table.rows:
                if row.baseline or row.name not in first:
                    continue
                through, compressed, parameters = _training(first[row.name], report.records)
                for anchor in anchors:
                    for figure in anchor.figures:
                        ours = row.scores.get(anchor.metric)
                        if ours is None or (figure.through, figure.compressed) != (through, compressed):
                            continue
                        ratio = anchor.parameters / parameters if parameters else None
                        rows.append(
                            {
                                "through": " + ".join(message(WORDS[kind]) for kind in through)
                                or message("from scratch"),
                                "model": row.name,
                                "metric": anchor.metric,
                                "ours": ours,
                                "parameters": parameters,
                                "system": anchor.system,
                                "published": figure.value,
                                "deviation": figure.deviation,
                                "theirs": anchor.parameters,
                                "scale": _scale(ratio),
                                "source": anchor.source,
                            }
                        )
        return {"rows": rows, "metrics": sorted({row["metric"] for row in rows})} if rows else None

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        far = {row["system"] for row in content["rows"] if row["scale"]}
        if not far:
            return []
        return [
            message(
                "Published figures are of much larger models ({systems}): compare gains, not scores.",
                systems=listing(sorted(far)),
            )
        ]

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        return [
            Table(
                metric,
                message("{metric}, ours and published", metric=metric_name(metric)),
                (
                    text("through", message("Pre-training")),
                    text("model", message("Our stage")),
                    estimate("ours", message("Ours"), metric),
                    number("parameters", message("Parameters"), count),
                    text("system", message("Published system")),
                    number("published", message("Published"), partial(score, metric=metric)),
                    number("deviation", message("± (seeds)"), partial(score, metric=metric)),
                    number("theirs", message("Parameters"), count),
                    text("scale", message("Scale")),
                    text("source", message("Source")),
                ),
                [row for row in content["rows"] if row["metric"] == metric],
            )
            for metric in content["metrics"]
        ]


def _training(fingerprint: str, records: Mapping[str, Mapping[str, Any]]) -> tuple[tuple[str, ...], bool, int]:
    """Kinds of a model's stages on plain text, whether it was compressed, and its number of parameters."""
    line = list(weight_history(fingerprint, records))
    kinds = [record["kind"] for record in line]
    parameters = int(line[0].get("result", {}).get("parameters") or 0) if line else 0
    return tuple(kind for kind in reversed(kinds) if kind in PLAIN_TEXT), "compress" in kinds, parameters


def _scale(ratio: float | None) -> str | None:
    if ratio is None or 1 / FAR <= ratio <= FAR:
        return None
    if ratio > 1:
        return message("published {times:.0f}x larger", times=ratio)
    return message("ours {times:.0f}x larger", times=1 / ratio)
