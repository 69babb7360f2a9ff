"""Layers that train with the values that their weights will have in few bits, and their inputs in 8 (Shen et al. 2020,
Q-BERT, §3; Jacob et al. 2018, §3).

The weights are in float32 and so is their file. Forward passes compute with the nearest values of their codes, whose
ranges follow the weights; backwards the rounding counts as the identity (straight-through, Bengio et al. 2013).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear
from transformers.pytorch_utils import Conv1D

from pipelines.networks.group_quantization import group_of_rows, ranges

ACTIVATION_STEPS = 255
"""Steps between the smallest and the largest value of 8 bits."""


class Rounding(NamedTuple):
    """How the weights of a layer are rounded, and the inputs of its product."""

    bits: int
    groups: int
    rounds_inputs: bool


class _ThroughCodes(torch.autograd.Function):
    """Values → those of their nearest codes, 0 … `most`, and the gradient as it comes."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, steps: Tensor, minima: Tensor, most: int) -> Tensor:
        codes = torch.where(steps > 0, (values - minima) / steps, 0).round().clamp(0, most)
        return codes * steps + minima

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return gradients[0], None, None, None


def _through_codes(values: Tensor, steps: Tensor, minima: Tensor, most: int) -> Tensor:
    rounded: Tensor = _ThroughCodes.apply(values, steps, minima, most)  # type: ignore[no-untyped-call]  # torch's
    return rounded


def rounded_matrix(weight: Tensor, bits: int, groups: int) -> Tensor:
    """float32 [R, C]: the values that codes of `bits` bits give to `weight`."""
    step, minimum = ranges(weight.detach(), bits, groups)
    of = group_of_rows(len(weight), groups, weight.device)
    return _through_codes(weight, step.to(weight)[of, None], minimum.to(weight)[of, None], 2**bits - 1)


def rounded_inputs(states: Tensor) -> Tensor:
    """`states` as one scale and one zero point for all of them give them back from 8 bits, as the dynamic quantization
    of ONNX Runtime does (`DynamicQuantizeLinear`): zero stays zero."""
    values = states.detach().float()
    low, high = values.amin().clamp(max=0), values.amax().clamp(min=0)
    step = (high - low) / ACTIVATION_STEPS
    zero = torch.where(step > 0, -low / step, 0).round()
    return _through_codes(states.float(), step, -zero * step, ACTIVATION_STEPS).to(states.dtype)


class RoundedLinear(nn.Linear):
    """A linear layer that computes as it will with few bits."""

    rounding: Rounding

    def forward(self, input: Tensor) -> Tensor:
        states = rounded_inputs(input) if self.rounding.rounds_inputs else input
        return linear(states, rounded_matrix(self.weight, *self.rounding[:2]), self.bias)


class RoundedConv1D(Conv1D):
    """A transposed linear layer that computes as it will with few bits."""

    rounding: Rounding

    def forward(self, x: Tensor) -> Tensor:
        states = rounded_inputs(x) if self.rounding.rounds_inputs else x
        return linear(states, rounded_matrix(self.weight.T, *self.rounding[:2]), self.bias)


class RoundedEmbedding(nn.Embedding):
    """A table that gives the rows that it will have with few bits: those that are read are rounded, by the ranges of
    the whole table."""

    rounding: Rounding

    def forward(self, input: Tensor) -> Tensor:
        bits, groups, _ = self.rounding
        step, minimum = ranges(self.weight.detach(), bits, groups)
        of = group_of_rows(len(self.weight), groups, self.weight.device)[input]
        rows = embedding(input, self.weight, self.padding_idx)
        steps, minima = (one.to(rows)[of].unsqueeze(-1) for one in (step, minimum))
        return _through_codes(rows, steps, minima, 2**bits - 1)


ROUNDED: dict[type[nn.Module], type[RoundedLinear | RoundedConv1D | RoundedEmbedding]] = {
    nn.Linear: RoundedLinear,
    Conv1D: RoundedConv1D,
    nn.Embedding: RoundedEmbedding,
}
"""Class of a layer → the class that computes with rounded weights."""


def round_in_training(module: nn.Module, rounding: Rounding) -> None:
    """Let `module` compute with rounded weights from now on; its parameters stay those it has."""
    module.__class__ = ROUNDED[type(module)]
    module.rounding = rounding  # type: ignore[assignment]  # torch types attributes as tensors or modules


def rounding_of(module: nn.Module) -> Rounding | None:
    """How a layer rounds its weights; None for one that does not."""
    return module.rounding if isinstance(module, (RoundedLinear, RoundedConv1D, RoundedEmbedding)) else None
