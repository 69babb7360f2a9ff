"""The inner layer of a feed-forward network with GELU (Hendrycks and Gimpel 2016) as one function.

The bias is added where the activation reads the product, which is what is kept for the gradient.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers.activations import GELUActivation

from pipelines.parts.accelerators.cpu_kernels.beside import starts_from, with_beside
from pipelines.parts.accelerators.cpu_kernels.block import asks_nobody, trains_narrow
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, PARTS, POINTER, SIZE, VECTOR, Kernel
from pipelines.parts.accelerators.cpu_kernels.linear import Linear
from pipelines.parts.accelerators.cpu_kernels.narrow import narrow
from pipelines.parts.accelerators.cpu_kernels.product import times
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

GELU = Kernel("cursus_gelu", *[POINTER] * 3, SIZE, SIZE, FLAG)
GELU_BACKWARD = Kernel("cursus_gelu_backward", *[POINTER] * 5, SIZE, SIZE, SIZE, FLAG)


class Activated(torch.autograd.Function):
    """`apply(states [..., I], weight [O, I], bias [O])`: gelu(states · weightᵀ + bias) [..., O] in bfloat16."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        rows, matrix = states.flatten(0, -2).bfloat16(), narrow(weight)
        product = times(rows, matrix.t())
        result = torch.empty_like(product)
        GELU(product.data_ptr(), bias.data_ptr(), result.data_ptr(), *product.shape, torch.get_num_threads())
        starts_from(ctx)
        ctx.save_for_backward(rows, matrix, product, bias)
        ctx.read = states.shape, states.dtype
        return result.view(*states.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix, product, bias = ctx.saved_tensors
        gradient, needs, (shape, kind) = outer[0].contiguous(), ctx.needs_input_grad, ctx.read
        slopes, sums = torch.empty_like(product), torch.empty(PARTS, product.shape[1])
        GELU_BACKWARD(
            gradient.data_ptr(), product.data_ptr(), bias.data_ptr(), slopes.data_ptr(), sums.data_ptr(), *product.shape, PARTS,
            torch.get_num_threads(),
        )  # fmt: skip
        return (
            with_beside(ctx, slopes, matrix).view(shape).to(kind) if needs[0] else None,
            weight_gradient(slopes, rows) if needs[1] else None,
            sums.sum(0) if needs[2] else None,
        )


class Intermediate(nn.Module):
    """Beside a class of transformers with these two children, whose program is BERT's."""

    dense: nn.Linear
    intermediate_act_fn: nn.Module

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[..., O] of `hidden_states` [..., I]."""
        dense, activation = self.dense, self.intermediate_act_fn
        if not (
            type(dense) is Linear and type(activation) is GELUActivation and activation.act is functional.gelu
            and self.training and dense.training and dense.out_features % VECTOR == 0
            and asks_nobody(dense, activation) and trains_narrow(hidden_states, dense.weight, dense.bias)
        ):  # fmt: skip
            said: Tensor = super().forward(hidden_states)
            return said
        result: Tensor = Activated.apply(hidden_states, dense.weight, dense.bias)  # type: ignore[no-untyped-call]  # torch does not type it
        return result
