"""Recall what was learnt while learning what is new, inside Adam (Chen et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines.parts.strategies import Decision, Strategy

if TYPE_CHECKING:
    from torch.optim import Optimizer


class RecAdam(Strategy, name="recadam"):
    """The loss moves from staying near the start's weights to the task, with a sigmoid of the step; new weights are free.

    The body's step is λ(t) of Adam's and 1 − λ(t) of a pull to the start, λ(t) = 1 / (1 + exp(−k · (t − t₀))) (§3.2, 3.3).
    """

    paper = "arXiv:2004.12651"
    decides = frozenset({Decision.HOLD, Decision.OPTIMIZER})

    pull: float = Field(0.1, gt=0, le=1)
    """Share of the way back to the start that a step at the peak rate takes while λ = 0. The paper's γ times its rate:
    5000 · 2e-5."""
    steepness: float = Field(0.1, gt=0)
    """k: how fast λ rises, for each step; the paper searches 0.05 to 1."""
    middle: float = Field(0.25, ge=0, le=1)
    """t₀: share of the steps after which both weigh the same; the paper searches 100 to 1000 steps."""

    def optimizer(self, groups: list[dict[str, Any]], total: int, options: dict[str, Any]) -> Optimizer | None:
        from pipelines.parts.optimizers.recall_adamw import RecallAdamW

        return RecallAdamW(groups, pull=self.pull, steepness=self.steepness, middle=self.middle * total, **options)
