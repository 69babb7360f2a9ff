"""Records of probes: estimates with intervals for every stage and layer, and the changes between stages.

{"metric": the first, "metrics": [...], "layers": [numbers], "items": N,
 "stages": [{"stage", "seeds", "layers": [{"layer", metric: estimate, ...}], "notes": [of each seed]}],
 "changes": [{"from", "to", "layers": [{"layer", metric: difference, ...}]}]}

A difference has its own interval; its `p` and `verdict` are corrected over all comparisons of a probe's metric as one
family.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pipelines.judging.certainty.resampling import RESAMPLES, interval, paired_difference
from pipelines.judging.certainty.significance import holm_corrected

if TYPE_CHECKING:
    from pipelines.judging.probes import Probe, ProbedStage

DIGITS = 6


def layer_record(probe: Probe, stages: Sequence[ProbedStage], seed: int) -> dict[str, Any]:
    """The section of a probe that scores layers.

    `changes` compares consecutive stages, in the order in which the recipe names them, on the same items; stages with
    different numbers of layers are not compared.
    """
    return {
        "metric": probe.metrics[0],
        "metrics": list(probe.metrics),
        "layers": sorted({number for stage in stages for number in stage.layers}),
        "items": len(stages[0].layer(0)[0]),
        "resamples": RESAMPLES,
        "stages": [
            {
                "stage": stage.name,
                "seeds": list(stage.seeds),
                "layers": [
                    {"layer": number, **_estimates(probe, stage, position, seed)}
                    for position, number in enumerate(stage.layers)
                ],
                "notes": [dict(one.notes) for one in stage.observations],
            }
            for stage in stages
        ],
        "changes": _changes(probe, stages, seed),
        "headline": {
            f"probe/{probe.name}/{probe.metrics[0]}/{stage.name}": max(
                _mean(probe, stage, position) for position, _ in enumerate(stage.layers)
            )
            for stage in stages
        },
    }


def rounded(value: Any) -> Any:
    """A record with its floats rounded to `DIGITS` decimal places."""
    if isinstance(value, float):
        return round(value, DIGITS)
    if isinstance(value, dict):
        return {key: rounded(one) for key, one in value.items()}
    return [rounded(one) for one in value] if isinstance(value, (list, tuple)) else value


def _estimates(probe: Probe, stage: ProbedStage, position: int, seed: int) -> dict[str, Any]:
    return {metric: interval(probe.scorer(metric), stage.layer(position), seed).record() for metric in probe.metrics}


def _changes(probe: Probe, stages: Sequence[ProbedStage], seed: int) -> list[dict[str, Any]]:
    """Differences between consecutive stages; every metric is a family of its own."""
    pairs = [(before, after) for before, after in pairwise(stages) if before.layers == after.layers]
    changes: list[dict[str, Any]] = [
        {"from": before.name, "to": after.name, "layers": [{"layer": number} for number in after.layers]}
        for before, after in pairs
    ]
    for metric in probe.metrics:
        score = probe.scorer(metric)
        family = [
            paired_difference(score, before.layer(position), after.layer(position), seed)
            for before, after in pairs
            for position in range(len(after.layers))
        ]
        for layer, record in zip(
            (layer for one in changes for layer in one["layers"]), holm_corrected(family), strict=True
        ):
            layer[metric] = record
    return changes


def _mean(probe: Probe, stage: ProbedStage, position: int) -> float:
    scores = [probe.score(probe.metrics[0], statistics) for statistics in stage.layer(position)]
    return sum(scores) / len(scores)
