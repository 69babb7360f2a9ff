"""Self-attention of several heads (Vaswani et al. 2017) as one function, from the states it reads to the context it says.

Query, key and value are one product, whose pass for the bias writes each head by itself; products of heads that are strided views
would copy them. The context and the gradients go back in one pass each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.attention import NAME, readable, softmax, softmax_backward, summed
from pipelines.parts.accelerators.cpu_kernels.beside import starts_from, with_beside
from pipelines.parts.accelerators.cpu_kernels.block import asks_nobody, trains_narrow
from pipelines.parts.accelerators.cpu_kernels.dropout import Draw, drawn
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, PARTS, POINTER, SIZE, VECTOR, Kernel
from pipelines.parts.accelerators.cpu_kernels.linear import Linear
from pipelines.parts.accelerators.cpu_kernels.narrow import narrow
from pipelines.parts.accelerators.cpu_kernels.product import times
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

if TYPE_CHECKING:
    from transformers import PretrainedConfig

SPLIT = Kernel("cursus_split_heads", *[POINTER] * 3, *[SIZE] * 5, FLAG)
JOIN = Kernel("cursus_join_heads", *[POINTER] * 3, *[SIZE] * 6, FLAG)
KINDS = 3
"""Query, key and value."""
PLAIN = 6
"""What `Attended` is given before the weights."""


class Attended(torch.autograd.Function):
    """`apply(states [B, L, I], mask, distances, size, scaling, draw, *weights [H, I], *biases [H])`: [B, L, H] in bfloat16.

    Weights and biases, where there are any, are those of query, key and value, in float32; a head is `size` wide. `mask` and
    `distances` are float32 [B or 1, heads or 1, L or 1, L], or None, and added to the scaled scores; the mask has no gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        mask: Tensor | None,
        distances: Tensor | None,
        size: int,
        scaling: float,
        draw: Draw,
        *parameters: Tensor,
    ) -> Tensor:
        batch, length, _ = states.shape
        rows, threads = states.flatten(0, 1).bfloat16(), torch.get_num_threads()
        matrix, biases = narrow(*parameters[:KINDS]), parameters[KINDS:]
        bias = torch.cat(biases) if biases else None
        product = times(rows, matrix.t())
        heads = len(matrix) // KINDS // size
        shape = (batch, length, KINDS, heads, size)
        apart = torch.empty(KINDS, batch * heads, length, size, dtype=torch.bfloat16)
        SPLIT(product.data_ptr(), None if bias is None else bias.data_ptr(), apart.data_ptr(), *shape, threads)
        query, key, value = apart.unbind()
        weights = torch.bmm(query, key.transpose(1, 2))
        chances = torch.empty_like(weights) if draw.dropped else weights
        shaped = (batch, heads, length, length)
        softmax(weights.view(shaped), mask, distances, scaling, draw, chances.view(shaped), weights.view(shaped))
        context = torch.bmm(weights, value)
        result = torch.empty(batch, length, heads * size, dtype=torch.bfloat16)
        JOIN(context.data_ptr(), result.data_ptr(), None, batch, length, 1, heads, size, PARTS, threads)
        starts_from(ctx)
        ctx.save_for_backward(rows, matrix, apart, chances, weights)
        ctx.shape, ctx.scaling, ctx.draw, ctx.read = shape, scaling, draw, states.dtype
        ctx.distances = None if distances is None else distances.shape
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        rows, matrix, apart, chances, weights = ctx.saved_tensors
        (batch, length, _, heads, size), draw, threads = ctx.shape, ctx.draw, torch.get_num_threads()
        (query, key, value), slopes = apart.unbind(), torch.empty_like(apart)
        gradient, context = outer[0].contiguous(), torch.empty_like(apart[0])
        SPLIT(gradient.data_ptr(), None, context.data_ptr(), batch, length, 1, heads, size, threads)
        torch.bmm(weights.transpose(1, 2), context, out=slopes[2])
        scores = torch.bmm(context, value.transpose(1, 2))
        softmax_backward(scores, chances, scores, ctx.scaling, draw)
        torch.bmm(scores, key, out=slopes[0])
        torch.bmm(scores.transpose(1, 2), query, out=slopes[1])
        width = KINDS * heads * size
        product = torch.empty(batch * length, width, dtype=torch.bfloat16)
        needs, states = ctx.needs_input_grad, (batch, length, rows.shape[1])
        of_weights, of_biases = needs[PLAIN : PLAIN + KINDS], needs[PLAIN + KINDS :]
        sums = torch.empty(PARTS, width) if any(of_biases) else None
        JOIN(
            slopes.data_ptr(), product.data_ptr(), None if sums is None else sums.data_ptr(), *ctx.shape, PARTS, threads
        )  # fmt: skip
        to_distances: Tensor | None = None
        if needs[2]:
            to_distances = summed(scores.view(batch, heads, length, length), ctx.distances).div_(ctx.scaling)
        # autograd adds to a gradient in its place only where nothing else shares its memory
        parts = weight_gradient(product, rows).chunk(KINDS) if any(of_weights) else [None] * KINDS
        totals = [None] * len(of_biases) if sums is None else sums.sum(0).chunk(KINDS)
        return (
            with_beside(ctx, product, matrix).view(states).to(ctx.read) if needs[0] else None,
            None,
            to_distances,
            *[None] * 3,
            *(
                part.clone() if part is not None and asked else None
                for part, asked in zip(parts, of_weights, strict=True)
            ),
            *(
                part.clone() if part is not None and asked else None
                for part, asked in zip(totals, of_biases, strict=True)
            ),
        )


def one_function(
    module: nn.Module,
    layers: Sequence[nn.Linear],
    size: int,
    states: Tensor,
    mask: Tensor | None,
    others: Mapping[str, Any],
) -> bool:
    """Whether `Attended` may compute for `module` what it makes of `states`.

    `layers` are those for its query, key and value, whose heads are `size` wide; `others` is what else it was told.
    """
    config: Any = module.config
    first = layers[0]
    return (
        config._attn_implementation == NAME and states.dim() == 3
        # hooks here are of those who record the weights
        and asks_nobody(*layers) and not module._forward_hooks
        and not others.get("output_attentions") and not getattr(config, "output_attentions", False)
        and module.training
        and all(type(one) is Linear and one.training and one.weight.shape == first.weight.shape for one in layers)
        and size % VECTOR == 0 and first.out_features % size == 0
        and (mask is None or (mask.dim() == 4 and not mask.requires_grad))
        and trains_narrow(states, *(one.weight for one in layers), *(one.bias for one in layers if one.bias is not None))
    )  # fmt: skip


class SelfAttention(nn.Module):
    """Beside a class of transformers with these three layers, whose program is BERT's."""

    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    dropout: nn.Dropout
    config: PretrainedConfig
    attention_head_size: int
    scaling: float

    def forward(
        self, hidden_states: Tensor, attention_mask: Tensor | None = None, past_key_values: Any = None, **others: Any
    ) -> tuple[Tensor, Tensor | None]:
        """[B, L, H] of `hidden_states` [B, L, I]; the weights, too, where somebody may want them."""
        layers, dropout = (self.query, self.key, self.value), self.dropout
        if not (
            past_key_values is None and others.get("position_bias") is None
            and isinstance(dropout, nn.Dropout) and dropout.p < 1
            and all(one.bias is not None for one in layers)
            and one_function(self, layers, self.attention_head_size, hidden_states, attention_mask, others)
        ):  # fmt: skip
            said: tuple[Tensor, Tensor | None] = super().forward(
                hidden_states, attention_mask=attention_mask, past_key_values=past_key_values, **others
            )
            return said
        mask = None if attention_mask is None else readable(attention_mask, hidden_states.shape[1])
        context: Tensor = Attended.apply(  # type: ignore[no-untyped-call]  # torch does not type it
            hidden_states, mask, None, self.attention_head_size, self.scaling, drawn(dropout.p),
            *(one.weight for one in layers), *(one.bias for one in layers),
        )  # fmt: skip
        return context, None
