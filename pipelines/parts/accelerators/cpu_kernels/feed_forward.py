"""T5's feed-forward network (Raffel et al. 2020, §2.1; the first version's, with ReLU) as one function.

The activations between its two layers stay bfloat16 and are computed in place; transformers casts them to float32 and
back. ReLU and dropout need no mask for the gradient: it passes where their output is greater than 0.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.bfloat16_copies import bfloat16_weights
from pipelines.parts.accelerators.cpu_kernels.dropout import DropoutDraw, KernelDropout, draw_dropout
from pipelines.parts.accelerators.cpu_kernels.eligibility import has_no_hooks, trains_in_bfloat16
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, REAL, SEED, SHARE, SIZE, Kernel
from pipelines.parts.accelerators.cpu_kernels.linear import KernelLinear
from pipelines.parts.accelerators.cpu_kernels.product import padded_mm
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

RELU = Kernel("cursus_relu", POINTER, SIZE, SEED, SHARE, REAL, FLAG)
RELU_BACKWARD = Kernel("cursus_relu_backward", POINTER, POINTER, SIZE, REAL, FLAG)


class FeedForwardFunction(torch.autograd.Function):
    """`apply(states [..., I], inner [F, I], outer [O, F], draw)`: dropout(relu(states · innerᵀ)) · outerᵀ [..., O] in
    bfloat16."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, inner: Tensor, outer: Tensor, draw: DropoutDraw) -> Tensor:
        rows, first, second = states.flatten(0, -2).bfloat16(), bfloat16_weights(inner), bfloat16_weights(outer)
        activations = padded_mm(rows, first.t())
        RELU(activations.data_ptr(), activations.numel(), draw.seed, draw.dropped, draw.scale, torch.get_num_threads())
        ctx.save_for_backward(rows, first, second, activations)
        ctx.scale, ctx.input_type = draw.scale, (states.shape, states.dtype)
        return padded_mm(activations, second.t()).view(*states.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        rows, first, second, activations = ctx.saved_tensors
        gradient, needs, (shape, kind) = outer[0].flatten(0, -2).contiguous(), ctx.needs_input_grad, ctx.input_type
        activation_gradient = padded_mm(gradient, second)
        RELU_BACKWARD(
            activation_gradient.data_ptr(),
            activations.data_ptr(),
            activations.numel(),
            ctx.scale,
            torch.get_num_threads(),
        )
        return (
            padded_mm(activation_gradient, first).view(shape).to(kind) if needs[0] else None,
            weight_gradient(activation_gradient, rows) if needs[1] else None,
            weight_gradient(gradient, activations) if needs[2] else None,
            None,
        )


class FusedFeedForward(nn.Module):
    """Mixin before a transformers class with these four children and the bytecode of T5's feed-forward network."""

    wi: nn.Linear
    wo: nn.Linear
    dropout: nn.Dropout
    act: nn.Module

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Output [..., O] for `hidden_states` [..., I]."""
        inner, outer, dropout = self.wi, self.wo, self.dropout
        if not (
            type(inner) is KernelLinear and type(outer) is KernelLinear
            and type(dropout) is KernelDropout and type(self.act) is nn.ReLU
            and self.training and inner.training and outer.training and dropout.training and dropout.p < 1
            and all(one.bias is None for one in (inner, outer)) and has_no_hooks(inner, outer, dropout, self.act)
            and trains_in_bfloat16(hidden_states, inner.weight, outer.weight)
        ):  # fmt: skip
            activations: Tensor = super().forward(hidden_states)
            return activations
        # torch does not type it
        result: Tensor = FeedForwardFunction.apply(  # type: ignore[no-untyped-call]
            hidden_states, inner.weight, outer.weight, draw_dropout(dropout.p)
        )
        return result
