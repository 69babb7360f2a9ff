"""LAMB: layer-wise adaptive moments for large batches (You et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines.parts.optimizers import Decay, Optimizer

if TYPE_CHECKING:
    import torch


class Lamb(Optimizer, name="lamb"):
    """Adam whose step of each matrix is as long as the matrix: the rate does not fall behind in large batches."""

    paper = "arXiv:1904.00962"

    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay of the running means of gradients and of their squares."""
    epsilon: float = Field(1e-6, gt=0)
    """ε, added to the root of the second moment."""

    def create(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        from pipelines.parts.optimizers.algorithms.layerwise_adam import LayerwiseAdam

        return LayerwiseAdam(groups, betas=self.betas, eps=self.epsilon)
