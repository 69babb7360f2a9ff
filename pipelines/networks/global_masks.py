"""Zeros that several matrices share: one threshold over the weights of all of them (See, Luong & Manning 2016, §3.2,
class-blind pruning)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pipelines.networks.masked_weights import KeptZeros, smallest


@torch.no_grad()
def zero_smallest_of_all(weights: Sequence[Tensor], share: float) -> None:
    """Set the weights of the smallest magnitude among all of `weights` to zero, so that `share` of them together are;
    those that are zero stay so."""
    sizes = [weight.numel() for weight in weights]
    count = round(share * sum(sizes))
    if count <= sum(sizes) - sum(int(weight.count_nonzero()) for weight in weights):
        return
    zeros = smallest(torch.cat([weight.abs().flatten() for weight in weights]), count)
    for weight, own in zip(weights, torch.split(zeros, sizes), strict=True):
        weight.masked_fill_(own.view_as(weight), 0)


class KeptZerosOfAll(KeptZeros):
    """The zeros of `weights` as they are now and become, which every call restores; new ones are the smallest of
    all."""

    @torch.no_grad()
    def __call__(self, share: float) -> None:
        """Restore the zeros after an optimizer step, then have at least `share` of all weights zero."""
        for weight, nonzero in zip(self.weights, self._nonzero, strict=True):
            weight.mul_(nonzero)
        zero_smallest_of_all(self.weights, share)
        for weight, nonzero in zip(self.weights, self._nonzero, strict=True):
            torch.ne(weight, 0, out=nonzero)
