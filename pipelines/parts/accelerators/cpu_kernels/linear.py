"""Linear layers whose weights are float32 and that compute in bfloat16, with fewer passes than autocast makes.

Autocast casts weight, bias and input of each layer, and the gradients back, and torch sums the gradient of a bias in a slow
pass of its own. Here layers that read the same input are one product: it is cast once, and the gradients of it that they send
back are summed inside that product, not after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.block import trains_narrow
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, SIZE, Kernel
from pipelines.parts.accelerators.cpu_kernels.narrow import narrow
from pipelines.parts.accelerators.cpu_kernels.product import in_whole, times
from pipelines.parts.accelerators.cpu_kernels.weight_gradient import weight_gradient

Rows = tuple[Tensor, ...]

COLUMN_SUMS = Kernel("cursus_column_sums", POINTER, POINTER, SIZE, SIZE, FLAG, FLAG)


class Together:
    """Layers that read the same input, one alone among them: their weights as one bfloat16 matrix, and one product for all.

    The first of them that is called computes for the others, which take what it has computed where they are called next, with
    that input.
    """

    def __init__(self, layers: Sequence[nn.Linear]) -> None:
        self.layers = list(layers)
        self.sizes = [layer.out_features for layer in layers]
        self._read: Tensor | None = None
        self._said: dict[int, Tensor] = {}

    def narrow(self) -> tuple[Tensor, Tensor | None]:
        """Weight [sum of O, I] and bias [sum of O] in bfloat16."""
        biases: list[Tensor] = [layer.bias for layer in self.layers if layer.bias is not None]
        return narrow(*(layer.weight for layer in self.layers)), torch.cat(biases).bfloat16() if biases else None

    def __call__(self, layer: nn.Linear, states: Tensor) -> Tensor:
        """What `layer` says of `states` [..., I], in bfloat16."""
        number = self.layers.index(layer)
        if self._read is states and number in self._said:
            return self._said.pop(number)
        weights = [one.weight for one in self.layers]
        biases = [one.bias for one in self.layers if one.bias is not None]
        rows = states.flatten(0, -2).to(torch.bfloat16)
        said: Rows = NarrowProduct.apply(rows, self, *weights, *biases)  # type: ignore[no-untyped-call]  # torch does not type it
        shaped = [one.view(*states.shape[:-1], -1) for one in said]
        # each answer is given once, so that a graph is not held longer than it is needed
        self._said = {other: one for other, one in enumerate(shaped) if other != number}
        self._read = states if self._said else None
        return shaped[number]


class NarrowProduct(torch.autograd.Function):
    """`apply(rows [N, I] bfloat16, layers, *weights [O, I] float32, *biases [O] float32)`: of each layer [N, O] bfloat16."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, together: Together, *parameters: Tensor) -> Rows:
        weight, bias = together.narrow()
        ctx.save_for_backward(rows, weight)
        ctx.sizes, ctx.biased = together.sizes, bias is not None
        with torch.autocast("cpu", enabled=False):
            said = nn.functional.linear(in_whole(rows), weight, bias)[: len(rows)]
        return torch.split(said, together.sizes, 1) if len(together.sizes) > 1 else (said,)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        rows, weight = ctx.saved_tensors
        gradient = (torch.cat(outer, 1) if len(outer) > 1 else outer[0]).contiguous()
        count, learn = len(ctx.sizes), ctx.needs_input_grad[2:]
        to_rows = times(gradient, weight) if ctx.needs_input_grad[0] else None
        to_weights: tuple[Tensor | None, ...] = (None,) * count
        to_biases: tuple[Tensor | None, ...] = (None,) * (count if ctx.biased else 0)
        if any(learn[:count]):
            whole = weight_gradient(gradient, rows)
            # autograd adds to a gradient in its place only where nothing else shares its memory
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


class Linear(nn.Linear):
    """torch's layer, in bfloat16 while it trains under autocast."""

    def forward(self, states: Tensor) -> Tensor:
        if not trains_narrow(states, self.weight):
            return super().forward(states)
        together: Together | None = self.__dict__.get("together")
        if together is None:
            together = self.__dict__["together"] = Together([self])
        return together(self, states)


def join(layers: Sequence[Linear]) -> None:
    """Let layers that are given the same input compute together; with different ones each computes for itself."""
    together = Together(layers)
    for layer in layers:
        layer.__dict__["together"] = together
