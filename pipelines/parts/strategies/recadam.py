"""RecAdam: Adam with a decaying pull to the pre-trained weights (Chen et al. 2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines.parts.strategies import Decision, Strategy

if TYPE_CHECKING:
    from torch.optim import Optimizer


class RecAdam(Strategy, name="recadam"):
    """Shift the objective from staying near the initial weights to the task, along a sigmoid of the step.

    The head is not pulled. A step of the backbone is λ(t) times Adam's plus 1 − λ(t) times a pull to the initial
    weights, where λ(t) = 1 / (1 + exp(−k · (t − t₀))) (§3.2, 3.3).
    """

    paper = "arXiv:2004.12651"
    decides = frozenset({Decision.HOLD, Decision.OPTIMIZER})

    pull: float = Field(0.1, gt=0, le=1)
    """Share of the distance to the initial weights that a step at the peak learning rate goes back while λ = 0. The
    default is the paper's γ times its learning rate: 5000 · 2e-5."""
    steepness: float = Field(0.1, gt=0)
    """k: slope of the sigmoid per step; the paper searches 0.05 to 1."""
    middle: float = Field(0.25, ge=0, le=1)
    """t₀: share of the steps after which both terms have equal weight; the paper searches 100 to 1000 steps."""

    def optimizer(self, groups: list[dict[str, Any]], total: int, options: dict[str, Any]) -> Optimizer | None:
        from pipelines.parts.optimizers.algorithms.recall_adamw import RecallAdamW

        return RecallAdamW(groups, pull=self.pull, steepness=self.steepness, middle=self.middle * total, **options)
