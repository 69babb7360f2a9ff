"""What ends a sub-layer of BERT's (Devlin et al. 2019) as one function: a linear layer, dropout, residual, layer normalisation.

Its bias is added, its mask drawn and its sum normalised in one pass over what the product has written, and in one pass backward.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.beside import beside, leave
from pipelines.parts.accelerators.cpu_kernels.block import asks_nobody, trains_narrow
from pipelines.parts.accelerators.cpu_kernels.dropout import Draw, Dropout, drawn
from pipelines.parts.accelerators.cpu_kernels.layer_norm import LayerNorm
from pipelines.parts.accelerators.cpu_kernels.library import (
    FLAG,
    PARTS,
    POINTER,
    REAL,
    SEED,
    SHARE,
    SIZE,
    VECTOR,
    Kernel,
)
from pipelines.parts.accelerators.cpu_kernels.linear import Linear
from pipelines.parts.accelerators.cpu_kernels.narrow import narrow
from pipelines.parts.accelerators.cpu_kernels.product import times
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

RESIDUAL = Kernel("cursus_residual", *[POINTER] * 8, SIZE, SIZE, REAL, SEED, SHARE, REAL, FLAG, FLAG)
RESIDUAL_BACKWARD = Kernel("cursus_residual_backward", *[POINTER] * 8, SIZE, SIZE, SIZE, SEED, SHARE, REAL, FLAG)


class NormedSum(torch.autograd.Function):
    """`apply(states [..., I], residual [..., H], weight [H, I], bias [H], gain [H], shift [H], epsilon, draw)`: [..., H].

    The layer normalisation of residual + dropout(states · weightᵀ + bias), in bfloat16. What is learnt is float32.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        residual: Tensor,
        weight: Tensor,
        bias: Tensor,
        gain: Tensor,
        shift: Tensor,
        epsilon: float,
        draw: Draw,
    ) -> Tensor:
        ctx.beside = beside(states, residual)
        rows, matrix, residual = states.flatten(0, -2).bfloat16(), narrow(weight), residual.contiguous()
        sums = times(rows, matrix.t())
        count, width = sums.shape
        result, moments = torch.empty_like(residual, dtype=torch.bfloat16), torch.empty(2, count)
        RESIDUAL(
            sums.data_ptr(), bias.data_ptr(), residual.data_ptr(), gain.data_ptr(), shift.data_ptr(), result.data_ptr(),
            moments.data_ptr(), moments[1].data_ptr(), count, width, epsilon, draw.seed, draw.dropped, draw.scale,
            torch.get_num_threads(), int(residual.dtype is torch.bfloat16),
        )  # fmt: skip
        ctx.save_for_backward(rows, matrix, sums, gain, moments)
        ctx.draw, ctx.read, ctx.added = draw, (states.shape, states.dtype), residual.dtype
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix, sums, gain, moments = ctx.saved_tensors
        gradient, draw, (shape, kind) = outer[0].contiguous(), ctx.draw, ctx.read
        count, width = sums.shape
        to_sums = torch.empty_like(sums)
        to_product = torch.empty_like(sums) if draw.dropped else to_sums
        parts = torch.empty(3, PARTS, width)
        RESIDUAL_BACKWARD(
            gradient.data_ptr(), sums.data_ptr(), gain.data_ptr(), moments.data_ptr(), moments[1].data_ptr(), to_sums.data_ptr(),
            to_product.data_ptr(), parts.data_ptr(), count, width, PARTS, draw.seed, draw.dropped, draw.scale,
            torch.get_num_threads(),
        )  # fmt: skip
        needs = ctx.needs_input_grad
        # autograd adds to a gradient in its place only where nothing else shares its memory
        to_gain, to_shift, to_bias = (
            parts[number].sum(0) if needs[at] else None for number, at in enumerate((4, 5, 3))
        )
        to_states = times(to_product, matrix).view(shape).to(kind) if needs[0] else None
        to_weight = weight_gradient(to_product, rows) if needs[2] else None
        to_residual = to_sums.view(gradient.shape).to(ctx.added) if needs[1] else None
        if to_residual is not None and ctx.beside is not None:
            leave(ctx.beside, to_residual)
            to_residual = None
        return (
            to_states,
            to_residual,
            to_weight,
            to_bias,
            to_gain,
            to_shift,
            None,
            None,
        )


class Residual(nn.Module):
    """Beside a class of transformers with these three children, whose program is BERT's."""

    dense: nn.Linear
    dropout: nn.Dropout
    LayerNorm: nn.LayerNorm

    def forward(self, hidden_states: Tensor, input_tensor: Tensor) -> Tensor:
        """[..., H] of `hidden_states` [..., I] and the residual `input_tensor` [..., H]."""
        dense, dropout, norm = self.dense, self.dropout, self.LayerNorm
        if not (
            type(dense) is Linear and type(dropout) is Dropout and type(norm) is LayerNorm
            and self.training and dense.training and dropout.training and norm.training
            and dropout.p < 1 and dense.out_features % VECTOR == 0
            and norm.normalized_shape == (dense.out_features,) and asks_nobody(dense, dropout, norm)
            and trains_narrow(hidden_states, dense.weight, dense.bias, norm.weight, norm.bias)
            and input_tensor.dtype in (torch.bfloat16, torch.float32)
            and input_tensor.shape == (*hidden_states.shape[:-1], dense.out_features)
        ):  # fmt: skip
            said: Tensor = super().forward(hidden_states, input_tensor)
            return said
        result: Tensor = NormedSum.apply(  # type: ignore[no-untyped-call]  # torch does not type it
            hidden_states, input_tensor, dense.weight, dense.bias, norm.weight, norm.bias, norm.eps, drawn(dropout.p)
        )
        return result
