"""T5's feed-forward network (Raffel et al. 2020, §2.1; the first version's, with ReLU) as one function.

What lies between its two layers stays bfloat16 and is written in its place; transformers casts it to float32 and back. ReLU and
dropout need no mask for the gradient: what they say is more than 0 where it goes through.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.block import asks_nobody, trains_narrow
from pipelines.parts.accelerators.cpu_kernels.dropout import Draw, Dropout, drawn
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, REAL, SEED, SHARE, SIZE, Kernel
from pipelines.parts.accelerators.cpu_kernels.linear import Linear
from pipelines.parts.accelerators.cpu_kernels.narrow import narrow
from pipelines.parts.accelerators.cpu_kernels.product import times
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

RELU = Kernel("cursus_relu", POINTER, SIZE, SEED, SHARE, REAL, FLAG)
RELU_BACKWARD = Kernel("cursus_relu_backward", POINTER, POINTER, SIZE, REAL, FLAG)


class Fed(torch.autograd.Function):
    """`apply(states [..., I], inner [F, I], outer [O, F], draw)`: dropout(relu(states · innerᵀ)) · outerᵀ [..., O] in bfloat16."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, inner: Tensor, outer: Tensor, draw: Draw) -> Tensor:
        rows, first, second = states.flatten(0, -2).bfloat16(), narrow(inner), narrow(outer)
        said = times(rows, first.t())
        RELU(said.data_ptr(), said.numel(), draw.seed, draw.dropped, draw.scale, torch.get_num_threads())
        ctx.save_for_backward(rows, first, second, said)
        ctx.scale, ctx.read = draw.scale, (states.shape, states.dtype)
        return times(said, second.t()).view(*states.shape[:-1], -1)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        rows, first, second, said = ctx.saved_tensors
        gradient, needs, (shape, kind) = outer[0].flatten(0, -2).contiguous(), ctx.needs_input_grad, ctx.read
        slopes = times(gradient, second)
        RELU_BACKWARD(slopes.data_ptr(), said.data_ptr(), said.numel(), ctx.scale, torch.get_num_threads())
        return (
            times(slopes, first).view(shape).to(kind) if needs[0] else None,
            weight_gradient(slopes, rows) if needs[1] else None,
            weight_gradient(gradient, said) if needs[2] else None,
            None,
        )


class FeedForward(nn.Module):
    """Beside a class of transformers with these four children, whose program is T5's."""

    wi: nn.Linear
    wo: nn.Linear
    dropout: nn.Dropout
    act: nn.Module

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[..., O] of `hidden_states` [..., I]."""
        inner, outer, dropout = self.wi, self.wo, self.dropout
        if not (
            type(inner) is Linear and type(outer) is Linear and type(dropout) is Dropout and type(self.act) is nn.ReLU
            and self.training and inner.training and outer.training and dropout.training and dropout.p < 1
            and all(one.bias is None for one in (inner, outer)) and asks_nobody(inner, outer, dropout, self.act)
            and trains_narrow(hidden_states, inner.weight, outer.weight)
        ):  # fmt: skip
            said: Tensor = super().forward(hidden_states)
            return said
        result: Tensor = Fed.apply(hidden_states, inner.weight, outer.weight, drawn(dropout.p))  # type: ignore[no-untyped-call]  # torch does not type it
        return result
