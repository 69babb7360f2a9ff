"""Costs of the stages of a lattice: tokens and minutes of training before the fine-tuning, from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.lineage.weights import PLAIN_TEXT, weight_history


@dataclass(frozen=True)
class Cost:
    """Cost of training on plain text."""

    tokens: float
    minutes: float


def path_costs(
    stages: Sequence[str], steps: Sequence[Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]]
) -> dict[str, Cost]:
    """For each fine-tuned stage of `stages`: the cost of everything that its first model was trained on before."""
    first = _first(steps)
    return {stage: _sum(_before(first[stage], records)) for stage in stages if stage in first}


def factor_costs(
    paths: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]]
) -> dict[str, Cost]:
    """Mean cost of each factor's own training over the paths that have it; the training of other factors is not its
    cost."""
    first, costs_of = _first(steps), dict[str, list[Cost]]()
    for path in paths:
        if path["stage"] in first:
            for factor, cost in zip(reversed(path["through"]), _before(first[path["stage"]], records), strict=False):
                costs_of.setdefault(factor, []).append(cost)
    return {
        factor: Cost(_sum(costs).tokens / len(costs), _sum(costs).minutes / len(costs))
        for factor, costs in costs_of.items()
    }


def _first(steps: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The fingerprint of the first model of each stage."""
    return {step["stage"]: step["fingerprint"] for step in reversed(steps)}


def _before(fingerprint: str, records: Mapping[str, Mapping[str, Any]]) -> list[Cost]:
    """Costs of the trainings on plain text that led to a model's weights, the latest first."""
    return [
        Cost(record["result"].get("tokens") or 0, record["environment"]["seconds"] / 60)
        for record in weight_history(fingerprint, records)
        if record["kind"] in PLAIN_TEXT
    ]


def _sum(costs: Sequence[Cost]) -> Cost:
    return Cost(sum(cost.tokens for cost in costs), sum(cost.minutes for cost in costs))
