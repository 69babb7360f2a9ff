"""Serving costs, model by model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.messages.translation import message
from pipelines.reports.elements.axes import count, percent
from pipelines.reports.elements.table import Column, Table, difference, estimate, number, text, verdict


def describe_costs(stage: str, section: Mapping[str, Any]) -> dict[str, Any]:
    """The template's values for the models that the evaluate stage `stage` timed side by side."""
    reference = section["reference"]
    rows = [
        {
            "stage": model["stage"],
            "runtime": f"{model['runtime']}, {model['weights']}",
            "parameters": model["parameters"],
            "bytes": model["bytes"],
            "operations": model["operations"],
            "one": model["latency_ms"]["1"],
            "many": model["latency_ms"]["32"],
            "accuracy": model["accuracy"],
            "agreement": model["agreement"],
            "against": model["accuracy_difference"] if model["stage"] != reference else None,
            "verdict": model["accuracy_difference"]["verdict"] if model["stage"] != reference else None,
        }
        for model in section["models"]
    ]
    columns = (
        text("stage", message("Model")),
        verdict("verdict"),
        text("runtime", message("Runtime")),
        number("parameters", message("Parameters"), count),
        number("bytes", message("On disk"), lambda value: f"{value / 1e6:.1f} MB"),
        number("operations", message("Operations"), count),
        _latency("one", message("1 text"), 1),
        _latency("many", message("32 texts"), 0),
        estimate("accuracy", message("Accuracy"), "accuracy"),
        number("agreement", message("Agrees with {model}", model=reference), percent),
        difference("against", message("Difference"), "accuracy"),
    )
    return {**section, "stage": stage, "table": Table(f"{stage}-costs", message("Serving costs"), columns, rows)}


def sentences(costs: Mapping[str, Any]) -> list[str]:
    """What the last of the measured models saves against the first."""
    first, last = costs["models"][0], costs["models"][-1]
    if first is last:
        return []
    faster = first["latency_ms"]["1"]["median"] / last["latency_ms"]["1"]["median"]
    return [
        message(
            "{model} is {smaller:.1f} times smaller than {other}, answers one text {faster:.1f} times as fast, and "
            "agrees with it on {agreement} of the texts.",
            model=last["stage"],
            other=first["stage"],
            smaller=first["bytes"] / last["bytes"],
            faster=faster,
            agreement=percent(last["agreement"]),
        )
    ]


def _latency(key: str, heading: str, digits: int) -> Column:
    """Milliseconds: the median, and the 90th percentile after it."""
    return Column(
        key,
        heading,
        lambda value: f"{value['median']:.{digits}f} ms, p90 {value['p90']:.{digits}f}",
        right=True,
        parts=("median", "p90"),
    )
