"""Bottleneck adapters, which the strategy `adapter` inserts after each sub-layer (Houlsby et al. 2019, §2.1)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class Bottleneck(nn.Module):
    """x + W₂ · gelu(W₁ · x + b₁) + b₂, over the last axis; nearly the identity when newly initialised.

    Args:
        width: H, size of the last axis of input and output.
        size: width of the bottleneck.
        deviation: standard deviation of the initial weights, truncated at two deviations; biases are 0.
    """

    def __init__(self, width: int, size: int, deviation: float) -> None:
        super().__init__()
        self.down, self.up = nn.Linear(width, size), nn.Linear(size, width)
        for linear in (self.down, self.up):
            nn.init.trunc_normal_(linear.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        added: Tensor = self.up(functional.gelu(self.down(x)))
        return x + added


class AdaptedDropout(nn.Dropout):
    """The dropout that ends a sub-layer, followed by an adapter, before the residual is added.

    It replaces the sub-layer's own dropout module, so that the names of the backbone's weights do not change.
    """

    def __init__(self, rate: float, adapter: Bottleneck) -> None:
        super().__init__(rate)
        self.adapter = adapter

    def forward(self, input: Tensor) -> Tensor:
        adapted: Tensor = self.adapter(super().forward(input))
        return adapted
