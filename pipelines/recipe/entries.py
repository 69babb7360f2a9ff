"""The function that computes a stage: that of its kind, or of an estimate by counting.

Functions are named, not imported, so that the code identity of a stage covers the code of its own kind only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.recipe.kinds import Kind

if TYPE_CHECKING:
    from pipelines.recipe.schema import Stage

ENTRY = {
    Kind.PRETRAIN: "pipelines.training.loop.fit:fit",
    Kind.ADAPT_DOMAIN: "pipelines.training.loop.fit:fit",
    Kind.ADAPT_TASK: "pipelines.training.loop.fit:fit",
    Kind.FINETUNE: "pipelines.training.loop.fit:fit",
    Kind.COMPRESS: "pipelines.training.loop.fit:fit",
    Kind.EVALUATE: "pipelines.judging.evaluations.stage:evaluate",
    Kind.PROBE: "pipelines.judging.probes.stage:probe",
}

COUNTING = "pipelines.training.estimation:estimate"
"""Computes a stage that is estimated from counts, whichever corpus its kind reads."""


def entry_of(stage: Stage) -> str:
    """`module:function` that computes `stage`."""
    return ENTRY[stage.kind] if stage.estimate is None else COUNTING
