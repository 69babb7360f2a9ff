"""Weights that become zero by how training moves them (Sanh, Wolf & Rush 2020, Movement Pruning)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from pipelines.networks.masked_weights import KeptZeros, smallest


class MovementMask:
    """A constraint that sets the `share` of each of `weights` with the lowest scores to zero, more and more of them.

    The score of a weight is S = −Σ ∂L/∂W′ · W over the steps so far (eq. 2): it grows where the gradient moves the
    weight away from zero. W′ is W where the mask is 1, else 0; a masked weight keeps its value and its score goes on
    (straight-through, §3), so that it may return. `share_after` maps progress to the share of zeros; once that is
    `share`, the mask is final.
    """

    def __init__(self, weights: Iterable[Tensor], share: float, share_after: Callable[[float], float]) -> None:
        self.weights, self._share, self._share_after = list(weights), share, share_after
        self._final = KeptZeros(self.weights) if all(self._is_pruned(weight) for weight in self.weights) else None
        self._values = [weight.detach().clone() for weight in self.weights]
        """W, masked ones included."""
        self._kept = [torch.ones_like(weight, dtype=torch.bool) for weight in self.weights]
        self._scores = [torch.zeros_like(weight, dtype=torch.float32) for weight in self.weights]

    @torch.no_grad()
    def __call__(self, progress: float) -> None:
        """After an optimizer step, whose gradients the weights still have."""
        share = self._share_after(progress)
        if self._final is not None:
            self._final(share)
            return
        for weight, value, kept, score in zip(self.weights, self._values, self._kept, self._scores, strict=True):
            if weight.grad is not None:
                score.sub_(weight.grad * value)
            value.copy_(torch.where(kept, weight, value))
            kept.copy_(~smallest(score, round(share * weight.numel())))
            weight.copy_(value * kept)
        if share >= self._share:
            self._final = KeptZeros(self.weights)

    def state(self) -> dict[str, Any]:
        """Values, masks and scores of all matrices; nothing once the mask is final."""
        if self._final is not None:
            return {}
        return {"values": self._values, "kept": self._kept, "scores": self._scores}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from what `state` returned."""
        for name, own in (("values", self._values), ("kept", self._kept), ("scores", self._scores)):
            for tensor, saved in zip(own, state[name], strict=True):
                tensor.copy_(saved)

    def _is_pruned(self, weight: Tensor) -> bool:
        return weight.numel() - int(weight.count_nonzero()) >= round(self._share * weight.numel())
