"""T5's sub-layers (Raffel et al. 2020): normalised states go in, what comes out is added to a stream that stays as wide as it is.

Dropout and the sum are one pass; a sum of float32 and bfloat16 is a slow one in torch. Backward, normalisation and the sum of both
gradients of the stream are one.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.block import asks_nobody, trains_narrow
from pipelines.parts.accelerators.cpu_kernels.dropout import Draw, Dropout, drawn, masked
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, REAL, SEED, SHARE, SIZE, Kernel
from pipelines.parts.accelerators.cpu_kernels.root_mean_square import normed

ADD_DROPPED = Kernel("cursus_add_dropped", *[POINTER] * 3, SIZE, SEED, SHARE, REAL, FLAG, FLAG)


class AddDropped(torch.autograd.Function):
    """`apply(states [...], values [...], draw)`: states + dropout(values), as wide as the states are. The values are bfloat16."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, values: Tensor, draw: Draw) -> Tensor:
        states, values = states.contiguous(), values.contiguous()
        result, ctx.draw = torch.empty_like(states), draw
        ADD_DROPPED(
            states.data_ptr(), values.data_ptr(), result.data_ptr(), result.numel(), draw.seed, draw.dropped, draw.scale,
            torch.get_num_threads(), int(states.dtype is torch.bfloat16),
        )  # fmt: skip
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        gradient = outer[0]
        return gradient, masked(gradient, ctx.draw, torch.bfloat16) if ctx.needs_input_grad[1] else None, None


def add_dropped(states: Tensor, values: Tensor, dropout: nn.Module) -> Tensor:
    """[...]: `states` [...] and what `dropout` leaves of `values` [...]."""
    if not (
        type(dropout) is Dropout and dropout.training and dropout.p < 1 and asks_nobody(dropout)
        and values.dtype is torch.bfloat16 and values.shape == states.shape and trains_narrow(states)
    ):  # fmt: skip
        plain: Tensor = states + dropout(values)
        return plain
    result: Tensor = AddDropped.apply(states, values, drawn(dropout.p))  # type: ignore[no-untyped-call]  # torch does not type it
    return result


class FeedForwardLayer(nn.Module):
    """Beside a class of transformers with these children, whose program is T5's."""

    DenseReluDense: nn.Module
    layer_norm: nn.Module
    dropout: nn.Module

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[B, L, H] of `hidden_states` [B, L, H]."""
        read, states = normed(self.layer_norm, hidden_states)
        return add_dropped(states, self.DenseReluDense(read), self.dropout)


class SelfAttentionLayer(nn.Module):
    """Beside a class of transformers with these children, whose program is T5's."""

    SelfAttention: nn.Module
    layer_norm: nn.Module
    dropout: nn.Module

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, position_bias: Tensor | None = None,
        past_key_values: Any = None, **others: Any,
    ) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
        """[B, L, H] of `hidden_states` [B, L, H]; the bias on positions, and the weights where somebody may want them."""
        read, states = normed(self.layer_norm, hidden_states)
        said, position_bias, weights = self.SelfAttention(
            read, mask=attention_mask, position_bias=position_bias, past_key_values=past_key_values, **others
        )
        return add_dropped(states, said, self.dropout), position_bias, weights


class CrossAttentionLayer(nn.Module):
    """Beside a class of transformers with these children, whose program is T5's."""

    EncDecAttention: nn.Module
    layer_norm: nn.Module
    dropout: nn.Module

    def forward(
        self, hidden_states: Tensor, key_value_states: Tensor, attention_mask: Tensor | None = None,
        position_bias: Tensor | None = None, past_key_values: Any = None, **others: Any,
    ) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
        """[B, Q, H] of `hidden_states` [B, Q, H] and what they look at, `key_value_states` [B, K, H]; else as self-attention."""
        read, states = normed(self.layer_norm, hidden_states)
        said, position_bias, weights = self.EncDecAttention(
            read, mask=attention_mask, key_value_states=key_value_states, position_bias=position_bias,
            past_key_values=past_key_values, **others,
        )  # fmt: skip
        return add_dropped(states, said, self.dropout), position_bias, weights
