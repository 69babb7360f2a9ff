"""The end of a sub-layer of BERT (Devlin et al. 2019) as one function: linear layer, dropout, residual, layer
normalisation.

Bias, dropout mask, sum and normalisation are computed in one pass over the product, and in one pass backward.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.bfloat16_copies import bfloat16_weights
from pipelines.parts.accelerators.cpu_kernels.dropout import DropoutDraw, KernelDropout, draw_dropout
from pipelines.parts.accelerators.cpu_kernels.eligibility import has_no_hooks, trains_in_bfloat16
from pipelines.parts.accelerators.cpu_kernels.layer_norm import KernelLayerNorm
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
from pipelines.parts.accelerators.cpu_kernels.linear import KernelLinear
from pipelines.parts.accelerators.cpu_kernels.product import padded_mm
from pipelines.parts.accelerators.cpu_kernels.residual_gradient import deposit, residual_receiver
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

RESIDUAL = Kernel("cursus_residual", *[POINTER] * 8, SIZE, SIZE, REAL, SEED, SHARE, REAL, FLAG, FLAG)
RESIDUAL_BACKWARD = Kernel("cursus_residual_backward", *[POINTER] * 8, SIZE, SIZE, SIZE, SEED, SHARE, REAL, FLAG)


class ResidualNormFunction(torch.autograd.Function):
    """`apply(states [..., I], residual [..., H], weight [H, I], bias [H], gain [H], shift [H], epsilon, draw)`: [...,
    H].

    layer_norm(residual + dropout(states · weightᵀ + bias)), in bfloat16. All parameters are float32.
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
        draw: DropoutDraw,
    ) -> Tensor:
        ctx.residual_receiver = residual_receiver(states, residual)
        rows, matrix, residual = states.flatten(0, -2).bfloat16(), bfloat16_weights(weight), residual.contiguous()
        sums = padded_mm(rows, matrix.t())
        count, width = sums.shape
        result, moments = torch.empty_like(residual, dtype=torch.bfloat16), torch.empty(2, count)
        RESIDUAL(
            sums.data_ptr(), bias.data_ptr(), residual.data_ptr(), gain.data_ptr(), shift.data_ptr(), result.data_ptr(),
            moments.data_ptr(), moments[1].data_ptr(), count, width, epsilon, draw.seed, draw.dropped, draw.scale,
            torch.get_num_threads(), int(residual.dtype is torch.bfloat16),
        )  # fmt: skip
        ctx.save_for_backward(rows, matrix, sums, gain, moments)
        ctx.draw, ctx.input_type, ctx.residual_dtype = draw, (states.shape, states.dtype), residual.dtype
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix, sums, gain, moments = ctx.saved_tensors
        gradient, draw, (shape, kind) = outer[0].contiguous(), ctx.draw, ctx.input_type
        count, width = sums.shape
        to_sums = torch.empty_like(sums)
        to_product = torch.empty_like(sums) if draw.dropped else to_sums
        parts = torch.empty(3, PARTS, width)
        RESIDUAL_BACKWARD(
            gradient.data_ptr(), sums.data_ptr(), gain.data_ptr(), moments.data_ptr(), moments[1].data_ptr(),
            to_sums.data_ptr(), to_product.data_ptr(), parts.data_ptr(), count, width, PARTS, draw.seed, draw.dropped,
            draw.scale, torch.get_num_threads(),
        )  # fmt: skip
        needs = ctx.needs_input_grad
        # autograd accumulates into a gradient in place only where nothing else shares its memory
        to_gain, to_shift, to_bias = (
            parts[number].sum(0) if needs[at] else None for number, at in enumerate((4, 5, 3))
        )
        to_states = padded_mm(to_product, matrix).view(shape).to(kind) if needs[0] else None
        to_weight = weight_gradient(to_product, rows) if needs[2] else None
        to_residual = to_sums.view(gradient.shape).to(ctx.residual_dtype) if needs[1] else None
        if to_residual is not None and ctx.residual_receiver is not None:
            deposit(ctx.residual_receiver, to_residual)
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


class FusedResidual(nn.Module):
    """Mixin before a transformers class with these three children and the bytecode of BERT's self-output."""

    dense: nn.Linear
    dropout: nn.Dropout
    LayerNorm: nn.LayerNorm

    def forward(self, hidden_states: Tensor, input_tensor: Tensor) -> Tensor:
        """States [..., H] of `hidden_states` [..., I] and the residual `input_tensor` [..., H]."""
        dense, dropout, norm = self.dense, self.dropout, self.LayerNorm
        if not (
            type(dense) is KernelLinear and type(dropout) is KernelDropout and type(norm) is KernelLayerNorm
            and self.training and dense.training and dropout.training and norm.training
            and dropout.p < 1 and dense.out_features % VECTOR == 0
            and norm.normalized_shape == (dense.out_features,) and has_no_hooks(dense, dropout, norm)
            and trains_in_bfloat16(hidden_states, dense.weight, dense.bias, norm.weight, norm.bias)
            and input_tensor.dtype in (torch.bfloat16, torch.float32)
            and input_tensor.shape == (*hidden_states.shape[:-1], dense.out_features)
        ):  # fmt: skip
            output: Tensor = super().forward(hidden_states, input_tensor)
            return output
        result: Tensor = ResidualNormFunction.apply(  # type: ignore[no-untyped-call]  # torch does not type it
            hidden_states,
            input_tensor,
            dense.weight,
            dense.bias,
            norm.weight,
            norm.bias,
            norm.eps,
            draw_dropout(dropout.p),
        )
        return result
