"""The inner layer of a feed-forward network with GELU (Hendrycks and Gimpel 2016) as one function.

The bias is added where the activation reads the product; the product without the bias is saved for the backward.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.activations import GELUActivation

from pipelines.parts.accelerators.cpu_kernels.bfloat16_copies import bfloat16_weights
from pipelines.parts.accelerators.cpu_kernels.eligibility import has_no_hooks, trains_in_bfloat16
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, PARTS, POINTER, SIZE, VECTOR, Kernel
from pipelines.parts.accelerators.cpu_kernels.linear import KernelLinear
from pipelines.parts.accelerators.cpu_kernels.product import padded_mm
from pipelines.parts.accelerators.cpu_kernels.residual_gradient import accept_residual_gradient, add_residual_gradient
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

GELU = Kernel("cursus_gelu", *[POINTER] * 3, SIZE, SIZE, FLAG)
GELU_BACKWARD = Kernel("cursus_gelu_backward", *[POINTER] * 5, SIZE, SIZE, SIZE, FLAG)


class LinearGELU(torch.autograd.Function):
    """`apply(states [..., I], weight [O, I], bias [O])`: gelu(states · weightᵀ + bias) [..., O] in bfloat16."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        rows, matrix = states.flatten(0, -2).bfloat16(), bfloat16_weights(weight)
        product = padded_mm(rows, matrix.t())
        result = torch.empty_like(product)
        GELU(product.data_ptr(), bias.data_ptr(), result.data_ptr(), *product.shape, torch.get_num_threads())
        accept_residual_gradient(ctx)
        ctx.save_for_backward(rows, matrix, product, bias)
        ctx.input_type = states.shape, states.dtype
        return result.view(*states.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix, product, bias = ctx.saved_tensors
        gradient, needs, (shape, kind) = outer[0].contiguous(), ctx.needs_input_grad, ctx.input_type
        product_gradient, sums = torch.empty_like(product), torch.empty(PARTS, product.shape[1])
        GELU_BACKWARD(
            gradient.data_ptr(), product.data_ptr(), bias.data_ptr(), product_gradient.data_ptr(), sums.data_ptr(),
            *product.shape, PARTS, torch.get_num_threads(),
        )  # fmt: skip
        return (
            add_residual_gradient(ctx, product_gradient, matrix).view(shape).to(kind) if needs[0] else None,
            weight_gradient(product_gradient, rows) if needs[1] else None,
            sums.sum(0) if needs[2] else None,
        )


class FusedIntermediate(nn.Module):
    """Mixin before a transformers class with these two children and the bytecode of BERT's intermediate layer."""

    dense: nn.Linear
    intermediate_act_fn: nn.Module

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Activations [..., O] of `hidden_states` [..., I]."""
        dense, activation = self.dense, self.intermediate_act_fn
        if not (
            type(dense) is KernelLinear and type(activation) is GELUActivation and activation.act is functional.gelu
            and self.training and dense.training and dense.out_features % VECTOR == 0
            and has_no_hooks(dense, activation) and trains_in_bfloat16(hidden_states, dense.weight, dense.bias)
        ):  # fmt: skip
            output: Tensor = super().forward(hidden_states)
            return output
        # torch does not type it
        result: Tensor = LinearGELU.apply(hidden_states, dense.weight, dense.bias)  # type: ignore[no-untyped-call]
        return result
