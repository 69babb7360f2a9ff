"""How long a step will take, guessed before it runs: from what this store has seen, else from its size."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.lineage.provenance import Provenance
from pipelines.recipe.plan import Plan, Step
from pipelines.training import hardware

START_SECONDS = 8.0
"""A training process's start: imports, reading, tokenising."""
FLOPS_PER_SECOND = 1.5e11
"""What one processor core sustains on small models, in the absence of a record. Replaced by records as soon as there are some."""
TOKENS_IN_TEXT = 90
"""Tokens of a short text, in the absence of a record."""
WIDTHS = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers")
"""What architectures call their hidden size and their number of layers."""


@dataclass(frozen=True)
class Estimate:
    """A guess."""

    tokens: int
    minutes: float


def estimate(step: Step, plan: Plan, records: Sequence[Provenance], threads: int | None) -> Estimate:
    """Tokens and minutes that computing `step` of `plan` would take; `records` are all of the store, oldest first."""
    budget = step.stage.budget
    dims = _dims(step, {other.fingerprint: other for other in plan.steps})
    seen = [] if dims else list(_alike(step, records))
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
    body = step.stage.backbone
    described = dims or ({**body.model_dump(), **getattr(body, "dims", {})} if body else {})
    return Estimate(tokens, (START_SECONDS + tokens * 6 * _weights(described) / rate) / 60)


def _alike(step: Step, records: Sequence[Provenance]) -> Iterator[Provenance]:
    """Finished steps of the same kind and body, oldest first."""
    body = step.identity["stage"].get("backbone")
    for record in records:
        known = record.identity.get("stage", {})
        if record.kind == step.stage.kind and record.stage == step.name and known.get("backbone") == body:
            yield record


def _dims(step: Step, steps: Mapping[str, Step]) -> dict[str, Any]:
    """The dimensions of the foreign checkpoint that `step` goes back to; empty where it goes back to none."""
    while step.checkpoint is None:
        parent = steps.get(step.parents.get("start", ""))
        if parent is None:
            return {}
        step = parent
    described: dict[str, Any] = json.loads((step.checkpoint / "config.json").read_text(encoding="utf-8"))
    return described


def _weights(dims: Mapping[str, Any]) -> float:
    """Weights that each token meets, roughly: 12 h² a layer, and the vocabulary for one token in six."""
    hidden = _first(dims, WIDTHS, 768.0)
    # a table of vectors says its width and no layers
    layers = _first(dims, LAYERS, 0.0 if "hidden_size" in dims else 12.0)
    return 12 * hidden**2 * layers + 2000 * hidden


def _first(dims: Mapping[str, Any], names: Sequence[str], otherwise: float) -> float:
    return next((float(dims[name]) for name in names if dims.get(name)), otherwise)


def _rows(step: Step) -> int:
    return 2000 if "task_text" in step.data else 200
