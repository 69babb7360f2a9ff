"""AdamW that recalls the weights it started from (Chen et al. 2020, RecAdam)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class RecallAdamW(torch.optim.AdamW):
    """Each step of the body is λ(t) of AdamW's and 1 − λ(t) of a pull back to its start; the head's is AdamW's.

        θ ← θ − η · (λ · m̂ / (√v̂ + ε) + (1 − λ) · γ · (θ − θ₀)),      λ(t) = 1 / (1 + exp(−k · (t − t₀)))

    (§3.3 and algorithm 1.) The pull is outside Adam's moments, as weight decay is. γ is `pull` over the highest rate of
    the body, so that it means the same at any rate. t counts from 1 and is kept in each group under `taken`.

    Args:
        groups: torch's parameter groups, each with `lr` at its peak and `is_head`; those that are not heads are pulled.
        pull: share of the way back to the start that a step at the peak rate takes while λ = 0.
        steepness: k, for each step.
        middle: t₀, in steps.
        options: `betas` and `eps`.
    """

    def __init__(
        self, groups: list[dict[str, Any]], *, pull: float, steepness: float, middle: float, **options: Any
    ) -> None:
        body = [group for group in groups if not group["is_head"]]
        self._strength = pull / max((group["lr"] for group in body), default=1.0)
        self._steepness, self._middle = steepness, middle
        # not in `state`: a checkpoint would hold every weight once more, and the start is known when a run resumes
        self._start = {parameter: parameter.detach().clone() for group in body for parameter in group["params"]}
        super().__init__([{**group, "taken": 0} for group in groups], fused=True, **options)

    def annealing(self, taken: int) -> float:
        """λ at step `taken`, counted from 1: the weight of the task, in [0, 1]."""
        return 0.5 * (1 + math.tanh(0.5 * self._steepness * (taken - self._middle)))

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss: Tensor | float | None = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        rates = [group["lr"] for group in self.param_groups]
        for group, rate in zip(self.param_groups, rates, strict=True):
            group["taken"] += 1
            if group["is_head"]:
                continue
            weight = self.annealing(group["taken"])
            for parameter in group["params"]:
                # one that does not train now stays where it is
                if parameter.grad is not None:
                    parameter.lerp_(self._start[parameter], rate * (1 - weight) * self._strength)
            # Adam's share does not depend on θ, so it may follow the pull; its rate carries λ
            group["lr"] = rate * weight
        super().step()
        for group, rate in zip(self.param_groups, rates, strict=True):
            group["lr"] = rate
        return loss
