"""T5's normalisation by the root of the mean square (Zhang and Sennrich 2019), which under autocast says bfloat16.

transformers computes it in float32 pass by pass, and each linear layer behind it casts what it says.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.block import asks_nobody, trains_narrow
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, PARTS, POINTER, REAL, SIZE, Kernel

ROOT_MEAN_SQUARE = Kernel("cursus_root_mean_square", *[POINTER] * 4, SIZE, SIZE, REAL, FLAG, FLAG)
ROOT_MEAN_SQUARE_BACKWARD = Kernel("cursus_root_mean_square_backward", *[POINTER] * 7, SIZE, SIZE, SIZE, FLAG, FLAG)


class ScaledRows(torch.autograd.Function):
    """`apply(states [..., H], gain [H] float32, epsilon)`: gain · states / √(mean of states² + epsilon) in bfloat16, and `states`.

    Who adds something to the states takes them from here: both of their gradients then arrive here, and are summed in one pass.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, gain: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
        states = states.contiguous()
        result, width = torch.empty_like(states, dtype=torch.bfloat16), states.shape[-1]
        steepness = torch.empty(states.numel() // width)
        ctx.half = int(states.dtype is torch.bfloat16)
        ROOT_MEAN_SQUARE(
            states.data_ptr(), gain.data_ptr(), result.data_ptr(), steepness.data_ptr(), len(steepness), width, epsilon,
            torch.get_num_threads(), ctx.half,
        )  # fmt: skip
        ctx.save_for_backward(states, gain, steepness)
        ctx.set_materialize_grads(False)
        return result, states

    @staticmethod
    def backward(ctx: Any, *outer: Tensor | None) -> tuple[Tensor | None, ...]:
        states, gain, steepness = ctx.saved_tensors
        normed, beside = (None if one is None else one.contiguous() for one in outer)
        if normed is None:
            return beside, None, None
        width, result = states.shape[-1], torch.empty_like(states)
        gains = torch.empty(PARTS, width)
        ROOT_MEAN_SQUARE_BACKWARD(
            normed.data_ptr(), states.data_ptr(), gain.data_ptr(), steepness.data_ptr(),
            None if beside is None else beside.data_ptr(), result.data_ptr(), gains.data_ptr(), len(steepness), width, PARTS,
            torch.get_num_threads(), ctx.half,
        )  # fmt: skip
        return result, gains.sum(0), None


class RootMeanSquare(nn.Module):
    """Beside a class of transformers with this weight, whose program is T5's."""

    weight: nn.Parameter
    variance_epsilon: float

    def forward(self, hidden_states: Tensor) -> Tensor:
        """[..., H] of `hidden_states` [..., H]."""
        if not trains_narrow(hidden_states, self.weight):
            said: Tensor = super().forward(hidden_states)
            return said
        return scaled_rows(self, hidden_states)[0]


def scaled_rows(norm: RootMeanSquare, states: Tensor) -> tuple[Tensor, Tensor]:
    """What `norm` says of `states` [..., H] while it trains narrow, and the states to which something is to be added."""
    said: tuple[Tensor, Tensor] = ScaledRows.apply(states, norm.weight, norm.variance_epsilon)  # type: ignore[no-untyped-call]  # torch does not type it
    return said


def normed(norm: nn.Module, states: Tensor) -> tuple[Tensor, Tensor]:
    """The same of whatever normalises, at any time."""
    if isinstance(norm, RootMeanSquare) and asks_nobody(norm) and trains_narrow(states, norm.weight):
        return scaled_rows(norm, states)
    return norm(states), states
