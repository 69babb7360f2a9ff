"""Whether the final model of an execution is surely better than no model: than its baselines, or than chance.

One that is not is registered all the same, since it may be what the recipe is about, but with the tag `cursus.warning`
and a line on the terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import hypot
from pathlib import Path
from typing import Any

from pipelines.messages.translation import message, template
from pipelines.recipe.final_models import LineageStep, final_model
from pipelines.reports.elements.wording import metric_name
from pipelines.reports.score_tables import BASELINE_NAMES, Estimated, EvaluationRecord, read_evaluations

CHANCE = "mcc"
"""Metric that is zero for answers that do not depend on the example, however frequent the classes are."""


def registration_warning(store: Path, steps: Sequence[LineageStep]) -> str | None:
    """Why the final model of an execution is not surely above its baselines, in a sentence; None if it is, or if there
    is none.

    `store` is the folder of the store, `steps` are those of the execution in their order.
    """
    final = final_model(steps)
    if final is None:
        return None
    judging = [(step.stage, step.fingerprint) for step in steps if final.fingerprint in step.parents.values()]
    scored = False
    for evaluation in read_evaluations(store, judging):
        for metric, own, other, score, is_above in _comparisons(evaluation, final.stage):
            scored = True
            if not is_above:
                name = metric_name(metric)
                return message(
                    "{model}: {metric} {own} is not surely above {other}",
                    model=final.stage,
                    metric=name,
                    own=_shown(own),
                    other=f"{other} {score}" if score else other,
                )
    return None if scored else message("{model}: no evaluate stage has scored it on test examples", model=final.stage)


def _comparisons(evaluation: EvaluationRecord, stage: str) -> Iterator[tuple[str, Estimated, str, str, bool]]:
    """Metric, score of `stage`, what it is compared with, the score of that, and whether the stage is surely above."""
    baselines = [one for section in evaluation.sections.values() for one in section.get("baselines", ())]
    for section in evaluation.sections.values():
        for entry in section.get("stages", ()):
            metrics = [metric for metric in section.get("metrics", ()) if metric in entry]
            if entry["stage"] != stage or not metrics or "attacks" in section:
                continue
            metric = section["verdict_metric"] if section.get("verdict_metric") in metrics else metrics[0]
            compared = [one for one in baselines if metric in one]
            for one in compared:
                name = BASELINE_NAMES.get(one["name"], one["name"])
                lower = _lowest_difference(entry[metric], one, metric, stage)
                baseline = message("the baseline {name}", name=template(name))
                yield metric, entry[metric], baseline, _shown(one[metric]), lower > 0
            if not compared:
                yield _without_baseline(evaluation.dataset, entry, metric)


def _without_baseline(
    dataset: Mapping[str, Any], entry: Mapping[str, Any], metric: str
) -> tuple[str, Estimated, str, str, bool]:
    """The comparison with what needs no model: the most frequent class, or a score of zero."""
    counts = dataset.get("per_label") or {}
    if CHANCE in entry:
        return CHANCE, entry[CHANCE], message("chance"), "0", entry[CHANCE]["low"] > 0
    if metric == "accuracy" and counts:
        most = max(counts["train"], key=lambda label: counts["train"][label])
        share = counts["test"].get(most, 0) / max(1, sum(counts["test"].values()))
        class_share = message("the share of the class {label!r}", label=most)
        return metric, entry[metric], class_share, f"{share:.3f}", entry[metric]["low"] > share
    return metric, entry[metric], "0", "", entry[metric]["low"] > 0


def _lowest_difference(own: Estimated, baseline: Mapping[str, Any], metric: str, stage: str) -> float:
    """Lower end of the 95 % interval of the score minus that of a baseline.

    Where the two were not compared example by example, their intervals are combined as if they were independent
    (Zou & Donner 2008, doi:10.1002/sim.3095), which is wider: both were scored on the same examples.
    """
    paired = baseline.get(f"{metric}_of_{stage}_minus_this")
    if paired is not None:
        return float(paired["low"])
    other = baseline[metric]
    difference = own["mean"] - other["mean"]
    return float(difference - hypot(own["mean"] - own["low"], other["high"] - other["mean"]))


def _shown(score: Estimated) -> str:
    return f"{score['mean']:.3f} [{score['low']:.3f}, {score['high']:.3f}]"
