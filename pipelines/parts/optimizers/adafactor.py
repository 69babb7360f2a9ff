"""Adafactor: adaptive rates with sublinear memory (Shazeer & Stern 2018)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from pipelines.parts.optimizers import Optimizer

if TYPE_CHECKING:
    import torch


FLOORS = (1e-15, 1e-3)
"""√ε₁ and ε₂ of the paper (§9: 1e-30 and 1e-3). torch's own ε₁, about 1e-7, is above the squared gradients of many
layers."""


class Adafactor(Optimizer, name="adafactor"):
    """Second moments of a matrix factored into rows and columns; steps relative to the size of the weights.

    Algorithm 4 of the paper, without momentum: the step is max(ε₂, RMS(weights)) · min(rate, 1/√t) times the gradient
    over the root of its second moment, whose RMS is at most `update_clip`. With `lr: 0.01` and a constant schedule the
    rate is T5's 1/√max(t, 10,000) (Raffel et al. 2020, §3.1.2).
    """

    paper = "arXiv:1804.04235"
    trains_sharded: ClassVar[bool] = False  # a column's second moment is a mean over rows that other ranks hold

    lr: float = Field(1e-2, gt=0)
    """Upper bound of the relative step ρ (§8)."""
    weight_decay: float = Field(0.0, ge=0)
    """Rate of decay of matrices; the paper has none."""
    clip: float | None = Field(None, gt=0)
    """Global gradient norm above which gradients are scaled down; null: never, since `update_clip` bounds each step."""
    decay: float = Field(-0.8, lt=0, gt=-1)
    """Exponent of the decay of second moments: β₂ at step t is 1 − t^decay (§7.2)."""
    update_clip: float = Field(1.0, gt=0)
    """d: largest root mean square of a step before it is scaled (§6)."""

    def create(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        import torch

        return torch.optim.Adafactor(groups, beta2_decay=self.decay, eps=FLOORS, d=self.update_clip)
