"""AdamW: Adam with decoupled weight decay (Loshchilov & Hutter 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.parts.optimizers import Decay, Optimizer

if TYPE_CHECKING:
    import torch

EPSILON = 1e-6
"""ε as in the optimizers of BERT and RoBERTa."""


class AdamW(Optimizer, name="adamw"):
    """Adam with decoupled weight decay: the default of every stage."""

    paper = "arXiv:1711.05101"

    betas: tuple[Decay, Decay] = (0.9, 0.98)
    """Decay of the running means of gradients and of their squares."""

    def create(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        import torch

        return torch.optim.AdamW(groups, fused=True, **self.adamw_options())

    def adamw_options(self) -> dict[str, Any]:
        return {"betas": self.betas, "eps": EPSILON}
