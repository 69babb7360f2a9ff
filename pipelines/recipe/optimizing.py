"""Check that a stage's optimizer fits its strategies and its backbone."""

from __future__ import annotations

from pipelines.parts.optimizers import Optimizer
from pipelines.parts.strategies import Decision
from pipelines.recipe.problems import Problem, listed, matching_members
from pipelines.recipe.schema import Stage


def check_optimizer(stage: Stage) -> Problem | None:
    """First problem of the optimizer of a stage that trains; None when it is valid."""
    chosen = stage.optimizer
    for strategy in stage.strategy:
        if Decision.OPTIMIZER in strategy.decides and chosen.adamw_options() is None:
            fits = matching_members(Optimizer, lambda one: one.adamw_options is not Optimizer.adamw_options)
            return (
                "optimizer",
                f"strategy {strategy.name} brings an AdamW of its own, but this stage names {chosen.name}; use "
                f"{listed(fits)}, or another strategy",
            )
        if Decision.HOLD in strategy.decides and chosen.sparse_gradients:
            return (
                "optimizer",
                f"{chosen.name} gives tables sparse gradients, but strategy {strategy.name} pulls all of their rows; "
                "drop one of them",
            )
    if stage.backbone is not None and (lacking := chosen.needs_abilities - stage.backbone.offers):
        fitting = ", ".join(stage.backbone.names_offering(chosen.needs_abilities))
        return (
            "optimizer",
            f"{chosen.name} with sparse gradients needs a backbone that is {listed(lacking)}, and this one "
            f"({stage.backbone.label}) is not; backbones that fit: {fitting}",
        )
    return None
