"""Changes of the hidden states by every stage, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.messages.translation import message, translatable
from pipelines.reports.elements.layers import PlottedLine, draw_lines
from pipelines.reports.elements.table import Column, Table, difference, estimate, number, text, verdict
from pipelines.reports.elements.wording import capital, measured_in, metric_name, score, span
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.sections import Report, Section
from pipelines.reports.sections.probe_results import read_probe_results

DRAWN = 2
"""Number of a probe's metrics that are drawn; the table has all of them."""


class ProbesSection(Section, name="probes"):
    """A plot of every probe over layers with a line per stage, changes between stages, and results without a layer."""

    title = translatable("Probes")

    def section_data(self, report: Report) -> dict[str, Any] | None:
        probed = read_probe_results(report, "layers")
        return {"probes": [_described(*one) for one in probed]} if probed else None

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        return [sentence for one in content["probes"] for sentence in (_best(one), _changed(one)) if sentence]

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        return [table for one in content["probes"] for table in one["tables"].values()]


def _described(stage: str, probe: str, section: Mapping[str, Any]) -> dict[str, Any]:
    layers = [str(layer) for layer in section["layers"]]
    plots = []
    for metric in section["metrics"][:DRAWN]:
        lines = [
            PlottedLine(one["stage"], [_at(one, layer, metric) for layer in section["layers"]])
            for one in section["stages"]
        ]
        drawn = draw_lines(lines, layers, metric, message("{metric} of every layer", metric=metric_name(metric)))
        plots.append({"title": capital(metric_name(metric)), "svg": drawn})
    return {
        "stage": stage,
        "title": capital(metric_name(probe)),
        "section": section,
        "plots": plots,
        "tables": _tables(f"{stage}-{probe}", section),
    }


def _at(stage: Mapping[str, Any], layer: int, metric: str) -> Mapping[str, Any] | None:
    return next((one[metric] for one in stage["layers"] if one["layer"] == layer), None)


def _tables(key: str, section: Mapping[str, Any]) -> dict[str, Table]:
    metric = section["metric"]
    tables = {
        "layers": Table(
            f"{key}-layers",
            message("Every layer"),
            (
                text("stage", message("Stage")),
                number("layer", message("Layer")),
                *(estimate(one, capital(metric_name(one)), one) for one in section["metrics"]),
            ),
            [{"stage": one["stage"], **layer} for one in section["stages"] for layer in one["layers"]],
        )
    }
    if section["changes"]:
        tables["changes"] = Table(
            f"{key}-changes",
            message("Changes between stages"),
            (
                text("compared", message("Compared")),
                number("layer", message("Layer")),
                verdict("verdict"),
                difference("change", capital(measured_in(metric)), metric),
            ),
            [
                {
                    "compared": f"{one['from']} → {one['to']}",
                    "layer": layer["layer"],
                    "change": layer[metric],
                    "verdict": layer[metric]["verdict"],
                }
                for one in section["changes"]
                for layer in one["layers"]
            ],
        )
    if any("mix" in note for one in section["stages"] for note in one["notes"]):
        tables["mixes"] = _mixes(key, section)
    if any("relations" in one for one in section["stages"]):
        tables["relations"] = _relations(key, section)
    return tables


def _mixes(key: str, section: Mapping[str, Any]) -> Table:
    columns = (
        text("stage", message("Stage")),
        number("seed", message("Seed")),
        number("centre", message("Centre of gravity"), "{:.2f}".format),
        number("expected", message("Expected layer"), "{:.2f}".format),
        Column(
            "mix", message("Weights, from the embeddings up"), lambda mix: " · ".join(f"{share:.2f}" for share in mix)
        ),
    )
    rows = [
        {
            "stage": one["stage"],
            "seed": seed,
            "centre": note["centre_of_gravity"],
            "expected": note["expected_layer"],
            "mix": note["mix"],
        }
        for one in section["stages"]
        for seed, note in zip(one["seeds"], one["notes"], strict=True)
    ]
    return Table(f"{key}-mixes", message("Weights of the layers"), columns, rows)


def _relations(key: str, section: Mapping[str, Any]) -> Table:
    columns = (
        text("stage", message("Stage")),
        text("relation", message("Relation")),
        verdict("verdict"),
        number("words", message("Words")),
        text("head", message("Head")),
        estimate("accuracy", message("Accuracy of the head"), "accuracy"),
        number("offset", message("Best offset"), lambda value: f"{value:+d}".replace("-", "−")),
        estimate("offset_accuracy", message("Accuracy of the offset"), "accuracy"),
        difference("above_offset", message("Head minus offset"), "accuracy"),
    )
    rows = [
        {
            **relation,
            "stage": one["stage"],
            "head": ", ".join(dict.fromkeys(f"{head['layer']}.{head['head']}" for head in relation["heads"])),
            "verdict": relation["above_offset"]["verdict"],
        }
        for one in section["stages"]
        for relation in one.get("relations", ())
    ]
    return Table(f"{key}-relations", message("Attention heads that follow a relation"), columns, rows)


def _best(one: Mapping[str, Any]) -> str | None:
    """The layer and stage from which the probe predicts best."""
    section = one["section"]
    metric = section["metric"]
    layers = [(stage["stage"], layer) for stage in section["stages"] for layer in stage["layers"]]
    stage, layer = max(layers, key=lambda pair: float(pair[1][metric]["mean"]))
    best = layer[metric]
    return message(
        "{probe}: best from layer {layer} of {stage}, {score} {metric} (95 % interval {interval}).",
        probe=one["title"],
        layer=layer["layer"],
        stage=stage,
        score=score(best["mean"], metric),
        metric=metric_name(metric),
        interval=span(best["low"], best["high"], metric),
    )


def _changed(one: Mapping[str, Any]) -> str | None:
    """The largest significant change between stages, and the number of significant ones."""
    section = one["section"]
    metric = section["metric"]
    changes = [(change, layer) for change in section["changes"] for layer in change["layers"]]
    significant = [pair for pair in changes if pair[1][metric]["verdict"] != "cannot tell"]
    if not significant:
        return (
            message(
                "{probe}, from stage to stage: none of {changes} changes of a layer is significant.",
                probe=one["title"],
                changes=len(changes),
            )
            if changes
            else None
        )
    change, layer = max(significant, key=lambda pair: abs(float(pair[1][metric]["difference"])))
    largest = layer[metric]
    return message(
        "{probe}, from stage to stage: {significant} of {changes} changes of a layer are significant after correction, "
        "the largest from {first} to {last} in layer {layer}: {difference} {unit} ({low} to {high}).",
        probe=one["title"],
        significant=len(significant),
        changes=len(changes),
        first=change["from"],
        last=change["to"],
        layer=layer["layer"],
        difference=written(largest["difference"], metric),
        unit=measured_in(metric),
        low=written(largest["low"], metric),
        high=written(largest["high"], metric),
    )
