"""The bottleneck that the strategy `adapter` puts after each sub-layer (Houlsby et al. 2019, §2.1)."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional


class Bottleneck(nn.Module):
    """x + W₂ · gelu(W₁ · x + b₁) + b₂, over the last axis; nearly the identity when new.

    Args:
        width: H, of what comes and goes.
        size: of the bottleneck between.
        deviation: standard deviation of the new weights, cut off at two deviations; biases are 0.
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
    """The dropout that ends a sub-layer, and an adapter on what it lets through, before the residual is added.

    It takes the place of the sub-layer's own dropout, so no weight of the body changes its name.
    """

    def __init__(self, rate: float, adapter: Bottleneck) -> None:
        super().__init__(rate)
        self.adapter = adapter

    def forward(self, input: Tensor) -> Tensor:
        adapted: Tensor = self.adapter(super().forward(input))
        return adapted
