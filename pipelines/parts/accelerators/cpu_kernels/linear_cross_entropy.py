"""Cross-entropy over a whole vocabulary of scores that are computed for it alone.

The product is one without a bias, which the kernel adds in float32 where it reads the scores; the gradient takes their place, and
the bias's is summed where it is made. All gradients are ready when the loss is, so that scores live no longer than that, and a
batch of many positions is computed in parts.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.cross_entropy import cross_entropy
from pipelines.parts.accelerators.cpu_kernels.narrow import narrow
from pipelines.parts.accelerators.cpu_kernels.product import in_whole
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

POSITIONS = 2048
"""Whose scores are in memory at a time."""
NOBODY = -1
"""Target of a row that is there for the number of rows alone."""


class ProjectedCrossEntropy(torch.autograd.Function):
    """`apply(rows [N, I] bfloat16, weight [V, I] float32, bias [V] float32 or None, targets int64 [N])`: their mean, float32.

    All targets are words of the vocabulary. It can be differentiated once.
    """

    @staticmethod
    def forward(ctx: Any, rows: Tensor, weight: Tensor, bias: Tensor | None, targets: Tensor) -> Tensor:
        to_rows, to_weight, to_bias = ctx.needs_input_grad[:3]
        matrix = narrow(weight)
        number = len(rows)
        rows, targets = in_whole(rows), in_whole(targets, NOBODY)
        slope = torch.empty_like(rows)
        of_weight: Tensor | None = None
        of_bias: Tensor | None = None
        total = torch.zeros(())
        with torch.autocast("cpu", enabled=False):
            for begin in range(0, len(rows), POSITIONS):
                there = slice(begin, begin + POSITIONS)
                scores = torch.mm(rows[there], matrix.t())
                losses, sums = cross_entropy(
                    scores, targets[there], 1 / number, bias=bias, slopes=scores, summed=to_bias
                )
                total += losses.sum()
                if to_rows:
                    torch.mm(scores, matrix, out=slope[there])
                if to_weight:
                    part = weight_gradient(scores, rows[there])
                    of_weight = part if of_weight is None else of_weight.add_(part)
                if sums is not None:
                    of_bias = sums if of_bias is None else of_bias.add_(sums)
        ctx.gradients = (slope[:number] if to_rows else None, of_weight, of_bias)
        return total / number

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.gradients
        if gradients is None:
            raise RuntimeError("a loss over a projection has been differentiated before, and can be only once")
        # nothing else keeps them: autograd may then add to them in their place
        ctx.gradients = None
        if float(outer[0]) != 1:
            gradients = tuple(one if one is None else one.mul_(outer[0]) for one in gradients)
        return *gradients, None


def projected_cross_entropy(states: Tensor, layer: nn.Linear, targets: Tensor) -> Tensor:
    """Scalar: mean cross-entropy of `targets` int64 [N], all of them words, under what `layer` says of `states` [N, I]."""
    rows = states.to(torch.bfloat16)
    loss: Tensor = ProjectedCrossEntropy.apply(rows, layer.weight, layer.bias, targets)  # type: ignore[no-untyped-call]  # torch does not type it
    return loss
