"""Linear layers whose file holds the weights that are not zero, and a bit for each weight that says which these are.

A weight of a matrix of which the share z is zero takes 1 + 32 (1 − z) bits of the file instead of 32: less from one in
32 zeros on. Memory holds the whole matrix in float32, since no product of this project skips zeros.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import linear
from transformers.pytorch_utils import Conv1D

from pipelines.networks.packed_codes import pack_codes, packed_columns, unpack_codes
from pipelines.networks.projections import axis_of
from pipelines.networks.stored_form import StoredForm

FLOAT_BITS = 32


def zeros_of(weight: Tensor) -> int:
    """Number of weights that are zero."""
    return weight.numel() - int(weight.count_nonzero())


def saves_bits(weight: Tensor) -> bool:
    """Whether `weight` takes less of a file as the weights that are not zero than as it is."""
    return FLOAT_BITS * zeros_of(weight) > weight.numel()


class SparseLinear(StoredForm):
    """x · Wᵀ + b, as the linear layer or `Conv1D` it is made of. The file has `nonzero` uint8 [⌈R · C / 8⌉], a bit for
    each weight, row after row, and `values` float32 [number of weights that are not zero], in the same order."""

    stored_names = ("nonzero", "values")
    bias: Tensor | None

    def __init__(self, layer: nn.Linear | Conv1D) -> None:
        super().__init__()
        weight = layer.weight.detach()
        self.register_buffer(
            "weight", (weight.T if axis_of(layer, inputs=True) == 0 else weight).contiguous(), persistent=False
        )
        self.out_features, self.in_features = self.weight.shape
        self.bias = layer.bias

    def stored(self) -> dict[str, Tensor]:
        nonzero = self.weight != 0
        return {"nonzero": pack_codes(nonzero.to(torch.uint8).view(1, -1), 1)[0], "values": self.weight[nonzero]}

    def restore(self, stored: Mapping[str, Tensor]) -> None:
        size = self.weight.numel()
        if len(stored["nonzero"]) != packed_columns(size, 1):
            raise ValueError(f"{len(stored['nonzero'])} bytes of bits for {size} weights")
        nonzero = unpack_codes(stored["nonzero"][None], 1, size)[0].bool()
        if int(nonzero.sum()) != len(stored["values"]):
            raise ValueError(f"{len(stored['values'])} values for {int(nonzero.sum())} weights that are not zero")
        flat = torch.zeros(size, dtype=self.weight.dtype, device=self.weight.device)
        flat[nonzero.to(flat.device)] = stored["values"].to(flat)
        self.weight = flat.view_as(self.weight)

    def forward(self, states: Tensor) -> Tensor:
        return linear(states, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"{self.in_features} to {self.out_features}, {zeros_of(self.weight)} zeros"
