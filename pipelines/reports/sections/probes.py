"""What every stage changed in the hidden states, layer by layer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.reports.elements.layers import Line, draw_lines
from pipelines.reports.elements.table import Column, Table, difference, estimate, number, text, verdict
from pipelines.reports.elements.wording import capital, measured_in, metric_name, score, span
from pipelines.reports.elements.wording import difference as written
from pipelines.reports.sections import Page, Report
from pipelines.reports.sections.probed import read_probed

DRAWN = 2
"""Metrics of a probe that are drawn; the table has all of them."""


class Probes(Page, name="probes"):
    """A plot of every probe over layers with a line for each stage, the changes between stages, and what has no layer."""

    title = "Probes"

    def found(self, report: Report) -> dict[str, Any] | None:
        probed = read_probed(report, "layers")
        return {"probes": [_described(*one) for one in probed]} if probed else None

    def sentences(self, content: Mapping[str, Any]) -> list[str]:
        return [sentence for one in content["probes"] for sentence in (_best(one), _changed(one)) if sentence]

    def tables(self, content: Mapping[str, Any]) -> list[Table]:
        return [table for one in content["probes"] for table in one["tables"].values()]


def _described(stage: str, probe: str, section: Mapping[str, Any]) -> dict[str, Any]:
    places = [str(layer) for layer in section["layers"]]
    plots = []
    for metric in section["metrics"][:DRAWN]:
        lines = [
            Line(one["stage"], [_at(one, layer, metric) for layer in section["layers"]]) for one in section["stages"]
        ]
        drawn = draw_lines(lines, places, metric, f"{metric_name(metric)} of every layer")
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
    found = {
        "layers": Table(
            f"{key}-layers",
            "Every layer",
            (
                text("stage", "Stage"),
                number("layer", "Layer"),
                *(estimate(one, capital(metric_name(one)), one) for one in section["metrics"]),
            ),
            [{"stage": one["stage"], **layer} for one in section["stages"] for layer in one["layers"]],
        )
    }
    if section["changes"]:
        found["changes"] = Table(
            f"{key}-changes",
            "What each stage changed",
            (
                text("compared", "Compared"),
                number("layer", "Layer"),
                difference("change", capital(measured_in(metric)), metric),
                verdict("verdict"),
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
        found["mixes"] = _mixes(key, section)
    if any("relations" in one for one in section["stages"]):
        found["relations"] = _relations(key, section)
    return found


def _mixes(key: str, section: Mapping[str, Any]) -> Table:
    columns = (
        text("stage", "Stage"),
        number("seed", "Seed"),
        number("centre", "Centre of gravity", "{:.2f}".format),
        number("expected", "Expected layer", "{:.2f}".format),
        Column("mix", "Weights, from the embeddings up", lambda mix: " · ".join(f"{share:.2f}" for share in mix)),
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
    return Table(f"{key}-mixes", "From which layers it is read", columns, rows)


def _relations(key: str, section: Mapping[str, Any]) -> Table:
    columns = (
        text("stage", "Stage"),
        text("relation", "Relation"),
        number("words", "Words"),
        text("head", "Head"),
        estimate("accuracy", "Attends to its head", "accuracy"),
        number("offset", "Best offset", lambda value: f"{value:+d}".replace("-", "−")),
        estimate("offset_accuracy", "The offset finds", "accuracy"),
        difference("above_offset", "Above it", "accuracy"),
        verdict("verdict"),
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
    return Table(f"{key}-relations", "Heads that find a relation", columns, rows)


def _best(one: Mapping[str, Any]) -> str | None:
    """Where the probe reads best."""
    section = one["section"]
    metric = section["metric"]
    layers = [(stage["stage"], layer) for stage in section["stages"] for layer in stage["layers"]]
    stage, layer = max(layers, key=lambda pair: float(pair[1][metric]["mean"]))
    found = layer[metric]
    return (
        f"{one['title']}: read best from layer {layer['layer']} of {stage}, {score(found['mean'], metric)} "
        f"{metric_name(metric)} (95 % interval {span(found['low'], found['high'], metric)})."
    )


def _changed(one: Mapping[str, Any]) -> str | None:
    """The change between stages that is largest among those that are certain, and how many are."""
    section = one["section"]
    metric = section["metric"]
    changes = [(change, layer) for change in section["changes"] for layer in change["layers"]]
    certain = [pair for pair in changes if pair[1][metric]["verdict"] != "cannot tell"]
    if not certain:
        return (
            f"{one['title']}, from stage to stage: none of {len(changes)} changes of a layer stands."
            if changes
            else None
        )
    change, layer = max(certain, key=lambda pair: abs(float(pair[1][metric]["difference"])))
    found = layer[metric]
    apart = written(found["difference"], metric)
    between = f"{written(found['low'], metric)} to {written(found['high'], metric)}"
    where = f"from {change['from']} to {change['to']} in layer {layer['layer']}"
    return (
        f"{one['title']}, from stage to stage: {len(certain)} of {len(changes)} changes of a layer stand when all are "
        f"counted, the largest {where}: {apart} {measured_in(metric)} ({between})."
    )
