"""Layer normalisation (Ba et al. 2016) with bfloat16 output under autocast.

torch's returns float32 there: each linear layer after it then casts the same states once more, and the residual stream
is summed in float32. Here mean and variance are float32, and the output is rounded once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, PARTS, POINTER, REAL, SIZE, Kernel, is_readable

LAYER_NORM = Kernel(
    "cursus_layer_norm", POINTER, POINTER, POINTER, POINTER, POINTER, POINTER, SIZE, SIZE, REAL, FLAG, FLAG
)
LAYER_NORM_BACKWARD = Kernel("cursus_layer_norm_backward", *[POINTER] * 8, SIZE, SIZE, SIZE, FLAG, FLAG)


class LayerNormFunction(torch.autograd.Function):
    """`apply(states [..., H], gain [H], bias [H], epsilon)`: [..., H] in bfloat16. Gain and bias are float32."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, gain: Tensor, bias: Tensor, epsilon: float) -> Tensor:
        states = states.contiguous()
        rows, width = states.numel() // states.shape[-1], states.shape[-1]
        result = torch.empty_like(states, dtype=torch.bfloat16)
        means, inverse_deviations = torch.empty(rows), torch.empty(rows)
        ctx.is_bfloat16 = int(states.dtype is torch.bfloat16)
        LAYER_NORM(
            states.data_ptr(), gain.data_ptr(), bias.data_ptr(), result.data_ptr(), means.data_ptr(),
            inverse_deviations.data_ptr(), rows, width, epsilon, torch.get_num_threads(), ctx.is_bfloat16,
        )  # fmt: skip
        ctx.save_for_backward(states, gain, means, inverse_deviations)
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        states, gain, means, inverse_deviations = ctx.saved_tensors
        gradient = outer[0].contiguous()
        rows, width = len(means), states.shape[-1]
        result = torch.empty_like(states)
        gains, biases = torch.empty(PARTS, width), torch.empty(PARTS, width)
        LAYER_NORM_BACKWARD(
            gradient.data_ptr(), states.data_ptr(), gain.data_ptr(), means.data_ptr(), inverse_deviations.data_ptr(),
            result.data_ptr(), gains.data_ptr(), biases.data_ptr(), rows, width, PARTS, torch.get_num_threads(),
            ctx.is_bfloat16,
        )  # fmt: skip
        return result, gains.sum(0), biases.sum(0), None


class KernelLayerNorm(nn.LayerNorm):
    """torch's layer normalisation, computed by the kernel where autocast is bfloat16."""

    def forward(self, states: Tensor) -> Tensor:
        output_dtype = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else states.dtype
        is_affine = self.weight is not None and self.bias is not None and self.weight.dtype is torch.float32
        if (
            not is_affine
            or len(self.normalized_shape) > 1
            or not is_readable(states)
            or output_dtype is not torch.bfloat16
        ):
            return super().forward(states)
        # torch does not type it
        result: Tensor = LayerNormFunction.apply(  # type: ignore[no-untyped-call]
            states, self.weight, self.bias, self.eps
        )
        return result
