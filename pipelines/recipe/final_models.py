"""The final models of an execution: those that are registered, and that `cursus predict` uses.

An evaluate stage lists the stages it judges, the main one last: `[scratch, from_general, classify]`, `[softmax, crf]`.
The final model is the first seed of that last stage; without an evaluate stage, the last model that answers a task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pipelines.lineage.weights import PLAIN_TEXT
from pipelines.recipe.plan import Plan

ANSWERING_KINDS = ("finetune", "compress")
"""Kinds of stages whose models answer a task."""


@dataclass(frozen=True)
class LineageStep:
    """A step of an execution with its parents: what is needed to trace the lineage."""

    stage: str
    seed: int
    kind: str
    fingerprint: str
    parents: Mapping[str, str]
    """Role → fingerprint, in the order of the recipe; a record in the store has them sorted."""

    @classmethod
    def read(cls, step: Mapping[str, Any]) -> Self:
        """Read a step of an `execution.json`."""
        return cls(step["stage"], int(step["seed"]), step["kind"], step["fingerprint"], step.get("parents", {}))


def lineage_steps(plan: Plan) -> list[LineageStep]:
    """Steps of a plan, in its order."""
    return [
        LineageStep(step.name, step.seed, step.stage.kind.value, step.fingerprint, dict(step.parents))
        for step in plan.steps
    ]


def final_model(steps: Sequence[LineageStep]) -> LineageStep | None:
    """Final model that answers the task, given the steps in the order they ran; None when no step answers a task."""
    answering = {step.fingerprint: step for step in steps if step.kind in ANSWERING_KINDS}
    evaluated = [
        [answering[parent] for parent in step.parents.values() if parent in answering]
        for step in steps
        if step.kind == "evaluate"
    ]
    groups = [models for models in evaluated if models]
    candidates = groups[-1] if groups else list(answering.values())
    if not candidates:
        return None
    last = candidates[-1].stage
    return min((step for step in candidates if step.stage == last), key=lambda step: step.seed)


def final_backbone(steps: Sequence[LineageStep]) -> LineageStep | None:
    """Plain-text model that the final model continues, else the last plain-text model; None when there is none."""
    by_fingerprint = {step.fingerprint: step for step in steps}
    current = final_model(steps)
    while current is not None and current.kind not in PLAIN_TEXT:
        current = by_fingerprint.get(current.parents.get("start", ""))
    return current or next((step for step in reversed(steps) if step.kind in PLAIN_TEXT), None)
