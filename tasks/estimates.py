"""How long a step will take, guessed before it runs: from what this store has seen, else from its size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pipelines.lineage.provenance import Provenance
from pipelines.lineage.store import Store
from pipelines.recipe.plan import Plan, Step
from pipelines.training import hardware

START_SECONDS = 8.0
"""A training process's start: imports, reading, tokenising."""
FLOPS_PER_SECOND = 1.5e11
"""What one processor core sustains on small models, in the absence of a record. Replaced by records as soon as there are some."""
TOKENS_IN_TEXT = 90
"""Tokens of a short text, in the absence of a record."""


@dataclass(frozen=True)
class Estimate:
    """A guess."""

    tokens: int
    minutes: float


def estimate(step: Step, plan: Plan, store: Store, threads: int | None) -> Estimate:
    """Tokens and minutes that computing `step` of `plan` would take."""
    budget = step.stage.budget
    dims = _dims(step, {other.fingerprint: other for other in plan.steps})
    seen = [] if dims else list(_alike(step, store))
    if seen:
        latest = seen[-1]
        tokens = budget.tokens or int(latest.result.get("tokens", 0))
        scale = tokens / latest.result["tokens"] if latest.result.get("tokens") else 1.0
        return Estimate(tokens, latest.environment.seconds * scale / 60)
    texts = _rows(step)
    tokens = budget.tokens if budget.tokens is not None else round((budget.epochs or 0) * texts * TOKENS_IN_TEXT)
    if not step.stage.trains:
        tokens = 0
    rate = FLOPS_PER_SECOND * (threads or hardware.cores())
    return Estimate(
        tokens, (START_SECONDS + tokens * 6 * _weights(dims or getattr(step.stage.backbone, "dims", {})) / rate) / 60
    )


def _alike(step: Step, store: Store) -> Iterator[Provenance]:
    """Finished steps of the same kind and body, oldest first."""
    body = step.identity["stage"].get("backbone")
    for record in store.all():
        known = record.identity.get("stage", {})
        if record.kind == step.stage.kind and record.stage == step.name and known.get("backbone") == body:
            yield record


def _dims(step: Step, steps: Mapping[str, Step]) -> dict[str, float]:
    """The dimensions of the foreign checkpoint that `step` goes back to; empty where it goes back to none."""
    while step.checkpoint is None:
        parent = steps.get(step.parents.get("start", ""))
        if parent is None:
            return {}
        step = parent
    described: dict[str, float] = json.loads((step.checkpoint / "config.json").read_text(encoding="utf-8"))
    return described


def _weights(dims: Mapping[str, float]) -> float:
    """Weights that each token meets, roughly: 12 h² a layer, and the vocabulary for one token in six."""
    hidden, layers = float(dims.get("hidden_size", 768)), float(dims.get("num_hidden_layers", 12))
    return 12 * hidden**2 * layers + 2000 * hidden


def _rows(step: Step) -> int:
    return 2000 if "task_text" in step.data else 200
