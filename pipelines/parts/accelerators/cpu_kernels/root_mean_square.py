"""T5's RMSNorm (Zhang and Sennrich 2019) with bfloat16 output under autocast.

transformers computes it in float32, one operation at a time, and each linear layer after it casts the output.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.eligibility import has_no_hooks, trains_in_bfloat16
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, PARTS, POINTER, REAL, SIZE, Kernel

ROOT_MEAN_SQUARE = Kernel("cursus_root_mean_square", *[POINTER] * 4, SIZE, SIZE, REAL, FLAG, FLAG)
ROOT_MEAN_SQUARE_BACKWARD = Kernel("cursus_root_mean_square_backward", *[POINTER] * 7, SIZE, SIZE, SIZE, FLAG, FLAG)


class RMSNormFunction(torch.autograd.Function):
    """`apply(states [..., H], gain [H] float32, epsilon)`: gain · states / √(mean of states² + epsilon) in bfloat16,
    and `states`.

    The residual connection reads the returned states: both of their gradients then arrive here, and are summed in one
    pass.
    """

    @staticmethod
    def forward(ctx: Any, states: Tensor, gain: Tensor, epsilon: float) -> tuple[Tensor, Tensor]:
        states = states.contiguous()
        result, width = torch.empty_like(states, dtype=torch.bfloat16), states.shape[-1]
        inverse_rms = torch.empty(states.numel() // width)
        ctx.is_bfloat16 = int(states.dtype is torch.bfloat16)
        ROOT_MEAN_SQUARE(
            states.data_ptr(), gain.data_ptr(), result.data_ptr(), inverse_rms.data_ptr(), len(inverse_rms), width,
            epsilon, torch.get_num_threads(), ctx.is_bfloat16,
        )  # fmt: skip
        ctx.save_for_backward(states, gain, inverse_rms)
        ctx.set_materialize_grads(False)
        return result, states

    @staticmethod
    def backward(ctx: Any, *outer: Tensor | None) -> tuple[Tensor | None, ...]:
        states, gain, inverse_rms = ctx.saved_tensors
        gradient, residual_gradient = (None if one is None else one.contiguous() for one in outer)
        if gradient is None:
            return residual_gradient, None, None
        width, result = states.shape[-1], torch.empty_like(states)
        gains = torch.empty(PARTS, width)
        ROOT_MEAN_SQUARE_BACKWARD(
            gradient.data_ptr(), states.data_ptr(), gain.data_ptr(), inverse_rms.data_ptr(),
            None if residual_gradient is None else residual_gradient.data_ptr(), result.data_ptr(), gains.data_ptr(),
            len(inverse_rms), width, PARTS, torch.get_num_threads(), ctx.is_bfloat16,
        )  # fmt: skip
        return result, gains.sum(0), None


class FusedRMSNorm(nn.Module):
    """Mixin before a transformers class with this weight and the bytecode of T5's layer norm."""

    weight: nn.Parameter
    variance_epsilon: float

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Normalised states [..., H] of `hidden_states` [..., H]."""
        if not trains_in_bfloat16(hidden_states, self.weight):
            output: Tensor = super().forward(hidden_states)
            return output
        return rms_norm(self, hidden_states)[0]


def rms_norm(norm: FusedRMSNorm, states: Tensor) -> tuple[Tensor, Tensor]:
    """`norm` of `states` [..., H] in a bfloat16 training step, and the states for the residual connection."""
    # torch does not type it
    output: tuple[Tensor, Tensor] = RMSNormFunction.apply(  # type: ignore[no-untyped-call]
        states, norm.weight, norm.variance_epsilon
    )
    return output


def normalised_with_residual(norm: nn.Module, states: Tensor) -> tuple[Tensor, Tensor]:
    """The output of any normalisation `norm` for `states`, and the states for the residual connection."""
    if isinstance(norm, FusedRMSNorm) and has_no_hooks(norm) and trains_in_bfloat16(states, norm.weight):
        return rms_norm(norm, states)
    return norm(states), states
