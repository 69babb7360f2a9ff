"""What the stages of a lattice cost: tokens and minutes of training before the fine-tuning, from the records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.lineage.weights import PLAIN_TEXT, continued


@dataclass(frozen=True)
class Cost:
    """Of training on plain text."""

    tokens: float
    minutes: float


def path_costs(
    stages: Sequence[str], steps: Sequence[Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]]
) -> dict[str, Cost]:
    """Of each fine-tuned stage among `steps` of an execution: all that its first model went through before."""
    first = _first(steps)
    return {stage: _together(_before(first[stage], records)) for stage in stages if stage in first}


def factor_costs(
    paths: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]], records: Mapping[str, Mapping[str, Any]]
) -> dict[str, Cost]:
    """What each factor costs a path that has it, on average: its own training, for what others take is not its doing."""
    first, found = _first(steps), dict[str, list[Cost]]()
    for path in paths:
        if path["stage"] in first:
            for factor, cost in zip(reversed(path["through"]), _before(first[path["stage"]], records), strict=False):
                found.setdefault(factor, []).append(cost)
    return {
        factor: Cost(_together(costs).tokens / len(costs), _together(costs).minutes / len(costs))
        for factor, costs in found.items()
    }


def _first(steps: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """The fingerprint of the first model of each stage."""
    return {step["stage"]: step["fingerprint"] for step in reversed(steps)}


def _before(fingerprint: str, records: Mapping[str, Mapping[str, Any]]) -> list[Cost]:
    """Of every training on plain text that a model's weights went through, the last first."""
    return [
        Cost(record["result"].get("tokens") or 0, record["environment"]["seconds"] / 60)
        for record in continued(fingerprint, records)
        if record["kind"] in PLAIN_TEXT
    ]


def _together(costs: Sequence[Cost]) -> Cost:
    return Cost(sum(cost.tokens for cost in costs), sum(cost.minutes for cost in costs))
