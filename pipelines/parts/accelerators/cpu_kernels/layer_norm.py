"""Layer normalisation (Ba et al. 2016) that under autocast says bfloat16.

torch's answers in float32 there: each linear layer behind it then casts the same states once more, and the sums of the residual
stream are of float32. Here mean and variance are float32's, what is said is rounded once.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, PARTS, POINTER, REAL, SIZE, Kernel, computable

LAYER_NORM = Kernel(
    "cursus_layer_norm", POINTER, POINTER, POINTER, POINTER, POINTER, POINTER, SIZE, SIZE, REAL, FLAG, FLAG
)
LAYER_NORM_BACKWARD = Kernel("cursus_layer_norm_backward", *[POINTER] * 8, SIZE, SIZE, SIZE, FLAG, FLAG)


class NormedRows(torch.autograd.Function):
    """`apply(states [..., H], gain [H], bias [H], epsilon)`: [..., H] in bfloat16. Gain and bias are float32."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, gain: Tensor, bias: Tensor, epsilon: float) -> Tensor:
        states = states.contiguous()
        rows, width = states.numel() // states.shape[-1], states.shape[-1]
        result = torch.empty_like(states, dtype=torch.bfloat16)
        means, steepness = torch.empty(rows), torch.empty(rows)
        ctx.half = int(states.dtype is torch.bfloat16)
        LAYER_NORM(
            states.data_ptr(), gain.data_ptr(), bias.data_ptr(), result.data_ptr(), means.data_ptr(), steepness.data_ptr(),
            rows, width, epsilon, torch.get_num_threads(), ctx.half,
        )  # fmt: skip
        ctx.save_for_backward(states, gain, means, steepness)
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        states, gain, means, steepness = ctx.saved_tensors
        gradient = outer[0].contiguous()
        rows, width = len(means), states.shape[-1]
        result = torch.empty_like(states)
        gains, biases = torch.empty(PARTS, width), torch.empty(PARTS, width)
        LAYER_NORM_BACKWARD(
            gradient.data_ptr(), states.data_ptr(), gain.data_ptr(), means.data_ptr(), steepness.data_ptr(), result.data_ptr(),
            gains.data_ptr(), biases.data_ptr(), rows, width, PARTS, torch.get_num_threads(), ctx.half,
        )  # fmt: skip
        return result, gains.sum(0), biases.sum(0), None


class LayerNorm(nn.LayerNorm):
    """torch's module, over the kernel where its output is bfloat16."""

    def forward(self, states: Tensor) -> Tensor:
        said = torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else states.dtype
        usual = self.weight is not None and self.bias is not None and self.weight.dtype is torch.float32
        if not usual or len(self.normalized_shape) > 1 or not computable(states) or said is not torch.bfloat16:
            return super().forward(states)
        result: Tensor = NormedRows.apply(states, self.weight, self.bias, self.eps)  # type: ignore[no-untyped-call]  # torch does not type it
        return result
