"""Which models an execution ends in: those that are offered under a name, and that `cursus predict` asks.

An evaluate stage lists what it judges so that the last is what the recipe is about: `[scratch, from_general, classify]`,
`[softmax, crf]`. Of that stage the first seed is taken. Where nothing was judged, it is the last model that answers a task.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from pipelines.lineage.weights import PLAIN_TEXT
from pipelines.recipe.plan import Plan

ANSWERING_KINDS = ("finetune", "compress")


@dataclass(frozen=True)
class LineageStep:
    """A step of an execution, as far as it says what came of what."""

    stage: str
    seed: int
    kind: str
    fingerprint: str
    parents: Mapping[str, str]
    """Role to fingerprint, in the order in which the recipe names them; a record in the store has them sorted."""

    @classmethod
    def read(cls, step: Mapping[str, Any]) -> Self:
        """A step of an `execution.json`."""
        return cls(step["stage"], int(step["seed"]), step["kind"], step["fingerprint"], step.get("parents", {}))


def lineage_steps(plan: Plan) -> list[LineageStep]:
    """The steps of a plan."""
    return [
        LineageStep(step.name, step.seed, step.stage.kind.value, step.fingerprint, dict(step.parents))
        for step in plan.steps
    ]


def final_model(steps: Sequence[LineageStep]) -> LineageStep | None:
    """The model that answers the task, of steps in the order they ran; None where none does."""
    answering = {step.fingerprint: step for step in steps if step.kind in ANSWERING_KINDS}
    judged = [
        [answering[parent] for parent in step.parents.values() if parent in answering]
        for step in steps
        if step.kind == "evaluate"
    ]
    shown = [models for models in judged if models]
    candidates = shown[-1] if shown else list(answering.values())
    if not candidates:
        return None
    last = candidates[-1].stage
    return min((step for step in candidates if step.stage == last), key=lambda step: step.seed)


def final_backbone(steps: Sequence[LineageStep]) -> LineageStep | None:
    """The model trained on plain text that the final one continues, else the last such model; None where there is none."""
    by_fingerprint = {step.fingerprint: step for step in steps}
    current = final_model(steps)
    while current is not None and current.kind not in PLAIN_TEXT:
        current = by_fingerprint.get(current.parents.get("start", ""))
    return current or next((step for step in reversed(steps) if step.kind in PLAIN_TEXT), None)
