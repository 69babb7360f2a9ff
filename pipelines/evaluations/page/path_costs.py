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
    first = {step["stage"]: step["fingerprint"] for step in reversed(steps)}
    return {stage: _before(first[stage], records) for stage in stages if stage in first}


def factor_costs(
    factors: Sequence[str], paths: Sequence[Mapping[str, Any]], costs: Mapping[str, Cost]
) -> dict[str, Cost]:
    """What a factor adds to a path, on average over the paths: the same contrast as its main effect."""
    found = {}
    for factor in factors:
        weights = {path["stage"]: (1 if factor in path["through"] else -1) * 2 / len(paths) for path in paths}
        if all(stage in costs for stage in weights):
            found[factor] = Cost(
                sum(weight * costs[stage].tokens for stage, weight in weights.items()),
                sum(weight * costs[stage].minutes for stage, weight in weights.items()),
            )
    return found


def _before(fingerprint: str, records: Mapping[str, Mapping[str, Any]]) -> Cost:
    read = [record for record in continued(fingerprint, records) if record["kind"] in PLAIN_TEXT]
    return Cost(
        sum(record["result"].get("tokens") or 0 for record in read),
        sum(record["environment"]["seconds"] for record in read) / 60,
    )
