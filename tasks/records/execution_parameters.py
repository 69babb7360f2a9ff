"""The parameters of an execution: what was requested, in the same keys for every execution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasks.launchers.settings import TrainingSettings

if TYPE_CHECKING:
    from pipelines.recipe.plan import Plan
    from pipelines.recipe.schema import Budget

NONE = "none"
KEYS = ("dataset", "recipe", "variants", "budgets", "seeds", "commit", "launcher", "smoke")


def execution_parameters(
    plan: Plan, dataset: str, variants: Sequence[str], training: TrainingSettings, commit: str | None, *, smoke: bool
) -> dict[str, str]:
    """A value for each of `KEYS`."""
    values = (
        dataset,
        plan.recipe.name,
        ", ".join(variants) or NONE,
        _budgets(plan) or NONE,
        ", ".join(map(str, sorted({step.seed for step in plan.steps}))),
        commit or NONE,
        _launcher(training),
        str(smoke).lower(),
    )
    return dict(zip(KEYS, values, strict=True))


def _budgets(plan: Plan) -> str:
    """`general: 2,000,000 tokens; classify, scratch: 4 epochs`."""
    stages: dict[str, dict[str, None]] = {}
    for step in plan.steps:
        if step.stage.trains and (amount := _amount(step.stage.budget)):
            name = step.name if step.recipe == plan.recipe.name else f"{step.recipe}/{step.name}"
            stages.setdefault(amount, {})[name] = None
    return "; ".join(f"{', '.join(names)}: {amount}" for amount, names in stages.items())


def _amount(budget: Budget) -> str:
    amount = f"{budget.tokens:,} tokens" if budget.tokens is not None else ""
    if budget.epochs is not None:
        amount = f"{budget.epochs:g} epoch{'' if budget.epochs == 1 else 's'}"
    return f"{amount} of {budget.labelled:,} examples" if amount and budget.labelled is not None else amount


def _launcher(training: TrainingSettings) -> str:
    ranks = training.nodes * training.devices
    return training.launcher.name if ranks == 1 else f"{training.launcher.name}, {ranks} ranks"
