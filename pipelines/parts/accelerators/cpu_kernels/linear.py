"""Linear layers with float32 weights that compute in bfloat16, in fewer passes than autocast.

Autocast casts weight, bias and input of each layer, and the gradients back, and torch sums the gradient of a bias in a
slow separate pass. Here layers that read the same input are one product: the input is cast once, and its gradients are
summed inside the product, not afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.bfloat16_copies import bfloat16_weights
from pipelines.parts.accelerators.cpu_kernels.eligibility import trains_in_bfloat16
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, SIZE, Kernel
from pipelines.parts.accelerators.cpu_kernels.product import pad_rows, padded_mm
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

Rows = tuple[Tensor, ...]

COLUMN_SUMS = Kernel("cursus_column_sums", POINTER, POINTER, SIZE, SIZE, FLAG, FLAG)


class SharedInputLayers:
    """One or more layers that read the same input: their weights as one bfloat16 matrix, and one product for all.

    The first layer that is called computes the outputs of all; the others return theirs when they are called next with
    the same input.
    """

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self.layers = list(layers)
        self.sizes = [layer.out_features for layer in layers]
        self._states: Tensor | None = None
        self._outputs: dict[int, Tensor] = {}

    def bfloat16_parameters(self) -> tuple[Tensor, Tensor | None]:
        """Weight [sum of O, I] and bias [sum of O] in bfloat16."""
        biases: list[Tensor] = [layer.bias for layer in self.layers if layer.bias is not None]
        return bfloat16_weights(*(layer.weight for layer in self.layers)), torch.cat(
            biases
        ).bfloat16() if biases else None

    def __call__(self, layer: nn.Linear, states: Tensor) -> Tensor:
        """The output of `layer` for `states` [..., I], in bfloat16."""
        number = self.layers.index(layer)
        if self._states is states and number in self._outputs:
            return self._outputs.pop(number)
        weights = [one.weight for one in self.layers]
        biases = [one.bias for one in self.layers if one.bias is not None]
        rows = states.flatten(0, -2).to(torch.bfloat16)
        # torch does not type it
        product: Rows = LinearFunction.apply(rows, self, *weights, *biases)  # type: ignore[no-untyped-call]
        shaped = [one.view(*states.shape[:-1], -1) for one in product]
        # each output is returned once, so that no graph is held longer than needed
        self._outputs = {other: one for other, one in enumerate(shaped) if other != number}
        self._states = states if self._outputs else None
        return shaped[number]


class LinearFunction(torch.autograd.Function):
    """`apply(rows [N, I] bfloat16, layers, *weights [O, I] float32, *biases [O] float32)`: [N, O] bfloat16 for each
    layer."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, together: SharedInputLayers, *parameters: Tensor) -> Rows:
        weight, bias = together.bfloat16_parameters()
        ctx.save_for_backward(rows, weight)
        ctx.sizes, ctx.biased = together.sizes, bias is not None
        with torch.autocast("cpu", enabled=False):
            product = nn.functional.linear(pad_rows(rows), weight, bias)[: len(rows)]
        return torch.split(product, together.sizes, 1) if len(together.sizes) > 1 else (product,)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        gradient = (torch.cat(outer, 1) if len(outer) > 1 else outer[0]).contiguous()
        count, learn = len(ctx.sizes), ctx.needs_input_grad[2:]
        to_rows = padded_mm(gradient, weight) if ctx.needs_input_grad[0] else None
        to_weights: tuple[Tensor | None, ...] = (None,) * count
        to_biases: tuple[Tensor | None, ...] = (None,) * (count if ctx.biased else 0)
        if any(learn[:count]):
            whole = weight_gradient(gradient, rows)
            # autograd accumulates into a gradient in place only where nothing else shares its memory
            to_weights = tuple(part.clone() for part in torch.split(whole, ctx.sizes)) if count > 1 else (whole,)
        if any(learn[count:]):
            to_biases = torch.split(column_sums(gradient), ctx.sizes)
        return to_rows, None, *to_weights, *to_biases


def column_sums(rows: Tensor) -> Tensor:
    """float32 [W]: the sums of `rows` [N, W] over N, in float32."""
    result = torch.empty(rows.shape[1])
    half = int(rows.dtype is torch.bfloat16)
    COLUMN_SUMS(rows.data_ptr(), result.data_ptr(), *rows.shape, torch.get_num_threads(), half)
    return result


class KernelLinear(nn.Linear):
    """torch's linear layer, computed in bfloat16 while it trains under autocast."""

    def forward(self, states: Tensor) -> Tensor:
        if not trains_in_bfloat16(states, self.weight):
            return super().forward(states)
        together: SharedInputLayers | None = self.__dict__.get("together")
        if together is None:
            together = self.__dict__["together"] = SharedInputLayers([self])
        return together(self, states)


def share_input(layers: Sequence[KernelLinear]) -> None:
    """Let layers that get the same input compute together; given different inputs, each computes its own output."""
    together = SharedInputLayers(layers)
    for layer in layers:
        layer.__dict__["together"] = together
