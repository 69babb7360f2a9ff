"""Layers whose weights are stored with 8, 4 or 2 bits, each group of rows with a range of its own (Shen et al. 2020,
Q-BERT, §3.2).

The file holds codes packed into bytes, and the range of each group in half precision. A layer is dequantized once, when
its weights are set or loaded: it then computes as fast as before, in float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear
from transformers.pytorch_utils import Conv1D

BYTE = 8
"""Bits."""


def pack(codes: Tensor, bits: int) -> Tensor:
    """uint8 [R, ⌈C · bits / 8⌉]: `codes` uint8 [R, C] below 2^bits, the first in the lowest bits of each byte."""
    each = BYTE // bits
    padded = torch.nn.functional.pad(codes, (0, -codes.shape[1] % each)).view(len(codes), -1, each)
    shifts = torch.arange(0, BYTE, bits, dtype=torch.int32, device=codes.device)
    packed: Tensor = (padded.int() << shifts).sum(-1).to(torch.uint8)
    return packed


def unpack(packed: Tensor, bits: int, columns: int) -> Tensor:
    """uint8 [R, columns]: the inverse of `pack`."""
    shifts = torch.arange(0, BYTE, bits, dtype=torch.int32, device=packed.device)
    codes: Tensor = (packed.int().unsqueeze(-1) >> shifts) & (2**bits - 1)
    return codes.flatten(1)[:, :columns].to(torch.uint8)


def group_of_rows(rows: int, groups: int, device: torch.device | None = None) -> Tensor:
    """int64 [rows]: the group of each row. Groups are consecutive rows, equally many but in the last."""
    return torch.arange(rows, device=device) // -(-rows // groups)


def ranges(weight: Tensor, bits: int, groups: int) -> tuple[Tensor, Tensor]:
    """Half-precision [G] step and minimum of each group of rows of `weight` [R, C].

    The minimum is rounded down and the step up, so that the codes 0 … 2^bits − 1 cover every value of the group.
    """
    of = group_of_rows(len(weight), groups, weight.device)
    count = int(of[-1]) + 1
    low, high = (
        torch.zeros(count, dtype=weight.dtype, device=weight.device).scatter_reduce(
            0, of, values, kind, include_self=False
        )
        for values, kind in ((weight.amin(1), "amin"), (weight.amax(1), "amax"))
    )
    minimum = _rounded(low, up=False)
    step = _rounded((high - minimum.to(weight)) / (2**bits - 1), up=True)
    return step, minimum


def _rounded(values: Tensor, *, up: bool) -> Tensor:
    """`values` in half precision, rounded up or down."""
    nearest = values.half()
    toward = torch.full_like(nearest, float("inf") if up else float("-inf"))
    wrong = nearest.to(values) < values if up else nearest.to(values) > values
    return torch.where(wrong, torch.nextafter(nearest, toward), nearest)


def quantize(weight: Tensor, bits: int, groups: int) -> tuple[Tensor, Tensor, Tensor]:
    """Codes uint8 [R, C], step and minimum [G] of the nearest values to `weight` [R, C]: an error of half a step at
    most."""
    step, minimum = ranges(weight, bits, groups)
    of = group_of_rows(len(weight), groups, weight.device)
    steps, minima = step.to(weight)[of, None], minimum.to(weight)[of, None]
    codes = torch.where(steps > 0, (weight - minima) / steps, 0).round().clamp(0, 2**bits - 1)
    return codes.to(torch.uint8), step, minimum


def dequantize(codes: Tensor, step: Tensor, minimum: Tensor, groups: int) -> Tensor:
    """float32 [R, C]: the values of `codes`."""
    of = group_of_rows(len(codes), groups, codes.device)
    return codes.float() * step.float()[of, None] + minimum.float()[of, None]


class GroupQuantized(nn.Module):
    """A layer with packed weights. Buffers: `codes` uint8 [R, ⌈C · bits / 8⌉], `step` and `minimum` float16 [G]; not
    saved is `weight` float32 [R, C], their values."""

    codes: Tensor
    step: Tensor
    minimum: Tensor
    weight: Tensor

    def __init__(self, weight: Tensor, bits: int, groups: int) -> None:
        super().__init__()
        self.bits, self.groups, self.columns = bits, groups, weight.shape[1]
        codes, step, minimum = quantize(weight.detach().float().contiguous(), bits, groups)
        self.register_buffer("codes", pack(codes, bits))
        self.register_buffer("step", step)
        self.register_buffer("minimum", minimum)
        self.register_buffer("weight", dequantize(codes, step, minimum, groups), persistent=False)

    def _load_from_state_dict(self, *arguments: Any) -> None:
        super()._load_from_state_dict(*arguments)
        codes = unpack(self.codes, self.bits, self.columns)
        self.weight = dequantize(codes, self.step, self.minimum, self.groups).to(self.weight)

    def extra_repr(self) -> str:
        return f"{len(self.codes)} rows of {self.columns}, {self.bits} bits, {len(self.step)} groups"


class GroupQuantizedLinear(GroupQuantized):
    """x · Wᵀ + b, as the linear layer or `Conv1D` it is made of; a row is an output neuron."""

    def __init__(self, layer: nn.Linear | Conv1D, bits: int, groups: int) -> None:
        super().__init__(matrix(layer), bits, groups)
        self.out_features, self.in_features = self.weight.shape
        self.bias = layer.bias

    def forward(self, states: Tensor) -> Tensor:
        return linear(states, self.weight, self.bias)


class GroupQuantizedEmbedding(GroupQuantized):
    """The rows of a table, as the embedding it is made of."""

    def __init__(self, layer: nn.Embedding, bits: int, groups: int) -> None:
        super().__init__(layer.weight, bits, groups)
        self.num_embeddings, self.embedding_dim = self.weight.shape
        self.padding_idx = layer.padding_idx

    def forward(self, ids: Tensor) -> Tensor:
        return embedding(ids, self.weight, self.padding_idx)


def matrix(layer: nn.Module) -> Tensor:
    """[R, C]: the weight of a layer that `quantized` knows, an output neuron or an entry of the table a row."""
    weight = layer.weight
    assert isinstance(weight, Tensor)
    return weight.T if isinstance(layer, Conv1D) else weight


def quantizable(module: nn.Module) -> bool:
    """Whether `quantized` knows the layer."""
    return type(module) in (nn.Linear, Conv1D, nn.Embedding)


def quantized(module: nn.Module, bits: int, groups: int) -> GroupQuantized:
    """The layer `module` with packed weights."""
    if isinstance(module, nn.Embedding):
        return GroupQuantizedEmbedding(module, bits, groups)
    assert isinstance(module, (nn.Linear, Conv1D))
    return GroupQuantizedLinear(module, bits, groups)
