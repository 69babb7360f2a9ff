"""LAMB (You et al. 2019, algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pipelines.parts.optimizers import call_with_gradient


class LayerwiseAdam(torch.optim.Optimizer):
    """Adam's direction with the length of the weights.

        θ ← θ − η · (‖θ‖ / ‖u‖) · u,      u = m̂ / (√v̂ + ε) + λ · θ

    m̂ and v̂ are bias-corrected. The ratio of norms is 1 where either is 0, and for vectors (biases and normalisation
    gains), as in the authors' code, which excludes them from layer adaptation.

    Args:
        groups: torch's parameter groups, each with `lr` and `weight_decay` (λ).
        betas: decay of the running means of gradients and of their squares.
        eps: ε.
    """

    def __init__(self, groups: list[dict[str, Any]], *, betas: tuple[float, float], eps: float) -> None:
        super().__init__(groups, {"betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = call_with_gradient(closure)
        for group in self.param_groups:
            for weights in group["params"]:
                if weights.grad is not None:
                    self._step(weights, group)
        return loss

    def _step(self, weights: Tensor, group: dict[str, Any]) -> None:
        state, gradient = self.state[weights], weights.grad
        assert gradient is not None
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weights), torch.zeros_like(weights)
        state["step"] += 1
        taken, (first, second) = float(state["step"]), group["betas"]
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(gradient, 1 - first)
        square.mul_(second).addcmul_(gradient, gradient, value=1 - second)
        update = (mean / (1 - first**taken)) / ((square / (1 - second**taken)).sqrt() + group["eps"])
        update += group["weight_decay"] * weights
        if weights.ndim > 1:
            size, length = weights.norm(), update.norm()
            # a tensor: on a GPU a comparison in Python would wait for the device
            update *= torch.where((size > 0) & (length > 0), size / length, torch.ones_like(size))
        weights.sub_(update, alpha=group["lr"])
