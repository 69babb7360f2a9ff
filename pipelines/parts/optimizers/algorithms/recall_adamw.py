"""AdamW with a decaying pull to its initial weights (Chen et al. 2020, RecAdam)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from pipelines.parts.optimizers import call_with_gradient


class RecallAdamW(torch.optim.AdamW):
    """A step of the backbone is λ(t) times AdamW's plus 1 − λ(t) times a pull to its initial weights; the head's is
    AdamW's.

        θ ← θ − η · (λ · m̂ / (√v̂ + ε) + (1 − λ) · γ · (θ − θ₀)),      λ(t) = 1 / (1 + exp(−k · (t − t₀)))

    (§3.3 and algorithm 1.) The pull does not enter Adam's moments, like decoupled weight decay. γ is `pull` divided by
    the highest learning rate of the backbone, so that `pull` means the same at any rate. t counts from 1 and is stored
    in each group as `taken`.

    Args:
        groups: torch's parameter groups, each with `lr` at its peak and `is_head`; only groups that are not heads are
            pulled.
        pull: share of the distance to the initial weights that a step at the peak rate goes back while λ = 0.
        steepness: k, per step.
        middle: t₀, in steps.
        options: `betas` and `eps`.
    """

    def __init__(
        self, groups: list[dict[str, Any]], *, pull: float, steepness: float, middle: float, **options: Any
    ) -> None:
        backbone = [group for group in groups if not group["is_head"]]
        self._strength = pull / max((group["lr"] for group in backbone), default=1.0)
        self._steepness, self._middle = steepness, middle
        # not in `state`: a checkpoint would hold every weight once more, and a resumed run has the initial weights
        # anyway
        self._start = {parameter: parameter.detach().clone() for group in backbone for parameter in group["params"]}
        super().__init__([{**group, "taken": 0} for group in groups], fused=True, **options)

    def annealing(self, taken: int) -> float:
        """λ at step `taken`, counted from 1: the weight of the task, in [0, 1]."""
        return 0.5 * (1 + math.tanh(0.5 * self._steepness * (taken - self._middle)))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = call_with_gradient(closure)
        rates = [group["lr"] for group in self.param_groups]
        for group, rate in zip(self.param_groups, rates, strict=True):
            group["taken"] += 1
            if group["is_head"]:
                continue
            weight = self.annealing(group["taken"])
            for parameter in group["params"]:
                # a parameter that does not train at this step is not pulled either
                if parameter.grad is not None:
                    parameter.lerp_(self._start[parameter], rate * (1 - weight) * self._strength)
            # Adam's term does not depend on θ, so it may follow the pull; λ is applied through its learning rate
            group["lr"] = rate * weight
        super().step()
        for group, rate in zip(self.param_groups, rates, strict=True):
            group["lr"] = rate
        return loss
