"""T5's sub-layers (Raffel et al. 2020): they read normalised states, and their output is added to a stream that keeps
its dtype.

Dropout and the sum are one pass; torch is slow to add float32 and bfloat16. In the backward, normalisation and the sum
of both gradients of the stream are one pass.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.dropout import DropoutDraw, KernelDropout, apply_dropout, draw_dropout
from pipelines.parts.accelerators.cpu_kernels.eligibility import has_no_hooks, trains_in_bfloat16
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, REAL, SEED, SHARE, SIZE, Kernel
from pipelines.parts.accelerators.cpu_kernels.root_mean_square import normalised_with_residual

ADD_DROPPED = Kernel("cursus_add_dropped", *[POINTER] * 3, SIZE, SEED, SHARE, REAL, FLAG, FLAG)


class DropoutAddFunction(torch.autograd.Function):
    """`apply(states [...], values [...], draw)`: states + dropout(values), in the dtype of the states.

    The values are bfloat16.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, values: Tensor, draw: DropoutDraw) -> Tensor:
        states, values = states.contiguous(), values.contiguous()
        result, ctx.draw = torch.empty_like(states), draw
        ADD_DROPPED(
            states.data_ptr(), values.data_ptr(), result.data_ptr(), result.numel(), draw.seed, draw.dropped,
            draw.scale, torch.get_num_threads(), int(states.dtype is torch.bfloat16),
        )  # fmt: skip
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        gradient = outer[0]
        return gradient, apply_dropout(gradient, ctx.draw, torch.bfloat16) if ctx.needs_input_grad[1] else None, None


def dropout_add(states: Tensor, values: Tensor, dropout: nn.Module) -> Tensor:
    """`states` [...] + `dropout`(`values` [...])."""
    if not (
        type(dropout) is KernelDropout and dropout.training and dropout.p < 1 and has_no_hooks(dropout)
        and values.dtype is torch.bfloat16 and values.shape == states.shape and trains_in_bfloat16(states)
    ):  # fmt: skip
        plain: Tensor = states + dropout(values)
        return plain
    # torch does not type it
    result: Tensor = DropoutAddFunction.apply(states, values, draw_dropout(dropout.p))  # type: ignore[no-untyped-call]
    return result


class FusedFeedForwardLayer(nn.Module):
    """Mixin before a transformers class with these children and the bytecode of T5's feed-forward sub-layer."""

    DenseReluDense: nn.Module
    layer_norm: nn.Module
    dropout: nn.Module

    def forward(self, hidden_states: Tensor) -> Tensor:
        """States [B, L, H] of `hidden_states` [B, L, H]."""
        normalised, states = normalised_with_residual(self.layer_norm, hidden_states)
        return dropout_add(states, self.DenseReluDense(normalised), self.dropout)


class FusedSelfAttentionLayer(nn.Module):
    """Mixin before a transformers class with these children and the bytecode of T5's self-attention sub-layer."""

    SelfAttention: nn.Module
    layer_norm: nn.Module
    dropout: nn.Module

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, position_bias: Tensor | None = None,
        past_key_values: Any = None, **others: Any,
    ) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
        """States [B, L, H] of `hidden_states` [B, L, H], the position bias, and the weights if requested."""
        normalised, states = normalised_with_residual(self.layer_norm, hidden_states)
        attended, position_bias, weights = self.SelfAttention(
            normalised, mask=attention_mask, position_bias=position_bias, past_key_values=past_key_values, **others
        )
        return dropout_add(states, attended, self.dropout), position_bias, weights


class FusedCrossAttentionLayer(nn.Module):
    """Mixin before a transformers class with these children and the bytecode of T5's cross-attention sub-layer."""

    EncDecAttention: nn.Module
    layer_norm: nn.Module
    dropout: nn.Module

    def forward(
        self, hidden_states: Tensor, key_value_states: Tensor, attention_mask: Tensor | None = None,
        position_bias: Tensor | None = None, past_key_values: Any = None, **others: Any,
    ) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
        """States [B, Q, H] of `hidden_states` [B, Q, H] attending to `key_value_states` [B, K, H]; else as
        self-attention."""
        normalised, states = normalised_with_residual(self.layer_norm, hidden_states)
        attended, position_bias, weights = self.EncDecAttention(
            normalised, mask=attention_mask, key_value_states=key_value_states, position_bias=position_bias,
            past_key_values=past_key_values, **others,
        )  # fmt: skip
        return dropout_add(states, attended, self.dropout), position_bias, weights
