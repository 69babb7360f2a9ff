"""Linear layer and cross-entropy over a whole vocabulary as one function.

The product has no bias: the kernel adds it in float32 where it reads the logits. The gradient overwrites the logits,
and that of the bias is summed in the same pass. All gradients are computed together with the loss, so that logits are
freed at once and a batch of many positions is computed in parts.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.bfloat16_copies import bfloat16_weights
from pipelines.parts.accelerators.cpu_kernels.cross_entropy import cross_entropy
from pipelines.parts.accelerators.cpu_kernels.product import pad_rows
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

POSITIONS = 2048
"""Number of positions whose logits are in memory at a time."""
NO_TARGET = -1
"""Target of the rows that only pad the product."""


class LinearCrossEntropy(torch.autograd.Function):
    """`apply(rows [N, I] bfloat16, weight [V, I] float32, bias [V] float32 or None, targets int64 [N])`: the mean loss,
    float32.

    All targets must be in the vocabulary. It can be differentiated once only.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
        to_rows, to_weight, to_bias = ctx.needs_input_grad[:3]
        matrix = bfloat16_weights(weight)
        number = len(rows)
        rows, targets = pad_rows(rows), pad_rows(targets, NO_TARGET)
        rows_gradient = torch.empty_like(rows)
        weight_gradient_sum: Tensor | None = None
        bias_gradient_sum: Tensor | None = None
        total = torch.zeros(())
        with torch.autocast("cpu", enabled=False):
            for begin in range(0, len(rows), POSITIONS):
                part_slice = slice(begin, begin + POSITIONS)
                scores = torch.mm(rows[part_slice], matrix.t())
                losses, sums = cross_entropy(
                    scores, targets[part_slice], 1 / number, bias=bias, gradient=scores, sum_gradient=to_bias
                )
                total += losses.sum()
                if to_rows:
                    torch.mm(scores, matrix, out=rows_gradient[part_slice])
                if to_weight:
                    part = weight_gradient(scores, rows[part_slice])
                    weight_gradient_sum = part if weight_gradient_sum is None else weight_gradient_sum.add_(part)
                if sums is not None:
                    bias_gradient_sum = sums if bias_gradient_sum is None else bias_gradient_sum.add_(sums)
        ctx.gradients = (rows_gradient[:number] if to_rows else None, weight_gradient_sum, bias_gradient_sum)
        return total / number

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.gradients
        if gradients is None:
            raise RuntimeError("a fused linear cross-entropy can be differentiated once only; compute the loss again")
        # no other reference is kept, so that autograd may accumulate into them in place
        ctx.gradients = None
        if float(outer[0]) != 1:
            gradients = tuple(one if one is None else one.mul_(outer[0]) for one in gradients)
        return *gradients, None


def linear_cross_entropy(states: Tensor, layer: nn.Linear, targets: Tensor) -> Tensor:
    """Scalar: mean cross-entropy of `targets` int64 [N], all in the vocabulary, under the logits of `layer` for
    `states` [N, I]."""
    rows = states.to(torch.bfloat16)
    # torch does not type it
    loss: Tensor = LinearCrossEntropy.apply(rows, layer.weight, layer.bias, targets)  # type: ignore[no-untyped-call]
    return loss
