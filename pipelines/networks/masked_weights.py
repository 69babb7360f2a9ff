"""Weights that are zero and stay zero. A mask is known by its zeros: nothing else has to be saved."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from pipelines.networks.projections import is_projection


def matrices_of_layers(backbone: nn.Module) -> dict[str, nn.Module]:
    """Path → linear layer, of those inside the lists of layers of `backbone`.

    Left out are those that are all zero, as a module is that was added to change nothing at first: no weight of it is
    small.
    """
    stacks = [f"{name}." for name, module in backbone.named_modules() if isinstance(module, nn.ModuleList)]
    inside = {
        name: module
        for name, module in backbone.named_modules()
        if is_projection(module) and name.startswith(tuple(stacks))
    }
    return {name: module for name, module in inside.items() if bool(weight_of(module).any())}


def weight_of(module: nn.Module) -> Tensor:
    """The matrix of a linear layer."""
    weight = module.weight
    assert isinstance(weight, Tensor)
    return weight


@torch.no_grad()
def zero_smallest(weight: Tensor, share: float) -> None:
    """Set the weights of the smallest magnitude to zero, so that `share` of all are; those that are zero stay so."""
    count = round(share * weight.numel())
    if count <= weight.numel() - int(weight.count_nonzero()):
        return
    weight.masked_fill_(smallest(weight.abs(), count), 0)


def smallest(values: Tensor, count: int) -> Tensor:
    """bool, of the shape of `values`: True for the `count` smallest; of equal ones, those that come first."""
    flat = values.flatten()
    if not count:
        return torch.zeros_like(values, dtype=torch.bool)
    largest = flat.kthvalue(count).values
    below = flat < largest
    equal = (flat == largest).nonzero().flatten()[: count - int(below.sum())]
    return below.index_fill_(0, equal, value=True).view_as(values)


class KeptZeros:
    """The zeros of `weights` as they are now and become, which every call restores."""

    def __init__(self, weights: Iterable[Tensor]) -> None:
        self.weights = list(weights)
        self._nonzero = [weight != 0 for weight in self.weights]

    @torch.no_grad()
    def __call__(self, share: float) -> None:
        """Restore the zeros after an optimizer step, then have at least `share` of them in each matrix."""
        for weight, nonzero in zip(self.weights, self._nonzero, strict=True):
            weight.mul_(nonzero)
            zero_smallest(weight, share)
            # what a resumed stage takes for the mask, also where a weight became zero by chance
            torch.ne(weight, 0, out=nonzero)
