"""Multi-head self-attention (Vaswani et al. 2017) as one function, from the hidden states to the context.

Query, key and value are one product; the pass that adds the bias writes each head contiguously, since products of heads
that are strided views would copy them. The context and the gradients are written back in one pass each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.attention import (
    NAME,
    prepare_mask,
    softmax,
    softmax_backward,
    sum_to_shape,
)
from pipelines.parts.accelerators.cpu_kernels.bfloat16_copies import bfloat16_weights
from pipelines.parts.accelerators.cpu_kernels.dropout import DropoutDraw, draw_dropout
from pipelines.parts.accelerators.cpu_kernels.eligibility import has_no_hooks, trains_in_bfloat16
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, PARTS, POINTER, SIZE, VECTOR, Kernel
from pipelines.parts.accelerators.cpu_kernels.linear import KernelLinear
from pipelines.parts.accelerators.cpu_kernels.product import padded_mm
from pipelines.parts.accelerators.cpu_kernels.residual_gradient import accept_residual_gradient, add_residual_gradient
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

if TYPE_CHECKING:
    from transformers import PretrainedConfig

SPLIT = Kernel("cursus_split_heads", *[POINTER] * 3, *[SIZE] * 5, FLAG)
JOIN = Kernel("cursus_join_heads", *[POINTER] * 3, *[SIZE] * 6, FLAG)
PROJECTIONS = 3
"""Query, key and value."""
ARGUMENTS_BEFORE_WEIGHTS = 6
"""Arguments of `SelfAttentionFunction` before the weights."""


class SelfAttentionFunction(torch.autograd.Function):
    """`apply(states [B, L, I], mask, distances, size, scaling, draw, *weights [H, I], *biases [H])`: [B, L, H] in
    bfloat16.

    Weights and biases, where there are any, are those of query, key and value, in float32; a head is `size` wide.
    `mask` and `distances` are float32 [B or 1, heads or 1, L or 1, L], or None, and added to the scaled scores; the
    mask has no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        mask: Tensor | None,
        distances: Tensor | None,
        size: int,
        scaling: float,
        draw: DropoutDraw,
        *parameters: Tensor,
    ) -> Tensor:
        batch, length, _ = states.shape
        rows, threads = states.flatten(0, 1).bfloat16(), torch.get_num_threads()
        matrix, biases = bfloat16_weights(*parameters[:PROJECTIONS]), parameters[PROJECTIONS:]
        bias = torch.cat(biases) if biases else None
        product = padded_mm(rows, matrix.t())
        heads = len(matrix) // PROJECTIONS // size
        shape = (batch, length, PROJECTIONS, heads, size)
        heads_first = torch.empty(PROJECTIONS, batch * heads, length, size, dtype=torch.bfloat16)
        SPLIT(product.data_ptr(), None if bias is None else bias.data_ptr(), heads_first.data_ptr(), *shape, threads)
        query, key, value = heads_first.unbind()
        weights = torch.bmm(query, key.transpose(1, 2))
        probabilities = torch.empty_like(weights) if draw.dropped else weights
        shaped = (batch, heads, length, length)
        softmax(weights.view(shaped), mask, distances, scaling, draw, probabilities.view(shaped), weights.view(shaped))
        context = torch.bmm(weights, value)
        result = torch.empty(batch, length, heads * size, dtype=torch.bfloat16)
        JOIN(context.data_ptr(), result.data_ptr(), None, batch, length, 1, heads, size, PARTS, threads)
        accept_residual_gradient(ctx)
        ctx.save_for_backward(rows, matrix, heads_first, probabilities, weights)
        ctx.shape, ctx.scaling, ctx.draw, ctx.input_dtype = shape, scaling, draw, states.dtype
        ctx.distances = None if distances is None else distances.shape
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix, heads_first, probabilities, weights = ctx.saved_tensors
        (batch, length, _, heads, size), draw, threads = ctx.shape, ctx.draw, torch.get_num_threads()
        (query, key, value), head_gradients = heads_first.unbind(), torch.empty_like(heads_first)
        gradient, context = outer[0].contiguous(), torch.empty_like(heads_first[0])
        SPLIT(gradient.data_ptr(), None, context.data_ptr(), batch, length, 1, heads, size, threads)
        torch.bmm(weights.transpose(1, 2), context, out=head_gradients[2])
        scores = torch.bmm(context, value.transpose(1, 2))
        softmax_backward(scores, probabilities, scores, ctx.scaling, draw)
        torch.bmm(scores, key, out=head_gradients[0])
        torch.bmm(scores.transpose(1, 2), query, out=head_gradients[1])
        width = PROJECTIONS * heads * size
        product = torch.empty(batch * length, width, dtype=torch.bfloat16)
        needs, states = ctx.needs_input_grad, (batch, length, rows.shape[1])
        weights_need, biases_need = (
            needs[ARGUMENTS_BEFORE_WEIGHTS : ARGUMENTS_BEFORE_WEIGHTS + PROJECTIONS],
            needs[ARGUMENTS_BEFORE_WEIGHTS + PROJECTIONS :],
        )
        sums = torch.empty(PARTS, width) if any(biases_need) else None
        JOIN(
            head_gradients.data_ptr(), product.data_ptr(), None if sums is None else sums.data_ptr(), *ctx.shape, PARTS,
            threads
        )  # fmt: skip
        to_distances: Tensor | None = None
        if needs[2]:
            to_distances = sum_to_shape(scores.view(batch, heads, length, length), ctx.distances).div_(ctx.scaling)
        # autograd accumulates into a gradient in place only where nothing else shares its memory
        parts = weight_gradient(product, rows).chunk(PROJECTIONS) if any(weights_need) else [None] * PROJECTIONS
        totals = [None] * len(biases_need) if sums is None else sums.sum(0).chunk(PROJECTIONS)
        return (
            add_residual_gradient(ctx, product, matrix).view(states).to(ctx.input_dtype) if needs[0] else None,
            None,
            to_distances,
            *[None] * 3,
            *(
                part.clone() if part is not None and needed else None
                for part, needed in zip(parts, weights_need, strict=True)
            ),
            *(
                part.clone() if part is not None and needed else None
                for part, needed in zip(totals, biases_need, strict=True)
            ),
        )


def can_fuse(
    module: nn.Module,
    layers: Sequence[nn.Linear],
    size: int,
    states: Tensor,
    mask: Tensor | None,
    options: Mapping[str, Any],
) -> bool:
    """Whether `SelfAttentionFunction` may compute the output of `module` for `states`.

    `layers` are its query, key and value layers, whose heads are `size` wide; `options` are the other keyword arguments
    of the call.
    """
    config: Any = module.config
    first = layers[0]
    return (
        config._attn_implementation == NAME and states.dim() == 3
        # hooks on the module record the weights
        and has_no_hooks(*layers) and not module._forward_hooks
        and not options.get("output_attentions") and not getattr(config, "output_attentions", False)
        and module.training
        and all(type(one) is KernelLinear and one.training and one.weight.shape == first.weight.shape for one in layers)
        and size % VECTOR == 0 and first.out_features % size == 0
        and (mask is None or (mask.dim() == 4 and not mask.requires_grad))
        and trains_in_bfloat16(
            states, *(one.weight for one in layers), *(one.bias for one in layers if one.bias is not None)
        )
    )  # fmt: skip


class FusedSelfAttention(nn.Module):
    """Mixin before a transformers class with these three layers and the bytecode of BERT's self-attention."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    dropout: nn.Dropout
    config: PretrainedConfig
    attention_head_size: int
    scaling: float

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, past_key_values: Any = None, **options: Any
    ) -> tuple[Tensor, Tensor | None]:
        """Context [B, L, H] of `hidden_states` [B, L, I], and the attention weights where they are requested."""
        layers, dropout = (self.query, self.key, self.value), self.dropout
        if not (
            past_key_values is None and options.get("position_bias") is None
            and isinstance(dropout, nn.Dropout) and dropout.p < 1
            and all(one.bias is not None for one in layers)
            and can_fuse(self, layers, self.attention_head_size, hidden_states, attention_mask, options)
        ):  # fmt: skip
            output: tuple[Tensor, Tensor | None] = super().forward(
                hidden_states, attention_mask=attention_mask, past_key_values=past_key_values, **options
            )
            return output
        mask = None if attention_mask is None else prepare_mask(attention_mask, hidden_states.shape[1])
        context: Tensor = SelfAttentionFunction.apply(  # type: ignore[no-untyped-call]  # torch does not type it
            hidden_states, mask, None, self.attention_head_size, self.scaling, draw_dropout(dropout.p),
            *(one.weight for one in layers), *(one.bias for one in layers),
        )  # fmt: skip
        return context, None
