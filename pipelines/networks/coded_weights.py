"""Layers that compute with the codes of their weights: 8, 4, 3 or 2 bits in the file, 8-bit integers in memory, each
group of rows with a range of its own (Shen et al. 2020, Q-BERT, §3.2).

The value of a code c is minimum + step · c, so that a product with a row of values is step · (x · c) + minimum · Σ x:
a product with the integers, scaled. Processors have no product of 4 or 3 bits, and torch none of float32 with integers:
those of one layer at a time are converted to float32 for it, and let go. For many inputs the values are computed
instead, once for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding, linear
from transformers.pytorch_utils import Conv1D

from pipelines.networks.group_quantization import group_of_rows, matrix, quantize
from pipelines.networks.packed_codes import pack_codes, packed_columns, unpack_codes
from pipelines.networks.stored_form import StoredForm


class CodedWeight(StoredForm):
    """The codes of a matrix [R, C]. Saved: `codes` uint8 [R, ⌈C · bits / 8⌉], `step` and `minimum` float16 [G]; in
    memory `weight`, int8 [R, C], a code less 2^(bits − 1), and `scale` and `offset`, float32 [R]: a row's values are
    scale · weight + offset."""

    stored_names = ("codes",)
    step: Tensor
    minimum: Tensor
    scale: Tensor
    offset: Tensor

    def __init__(self, weight: Tensor, bits: int, groups: int) -> None:
        super().__init__()
        self.bits, self.groups = bits, groups
        codes, step, minimum = quantize(weight.detach().float().contiguous(), bits, groups)
        self.register_buffer("step", step)
        self.register_buffer("minimum", minimum)
        for name in ("weight", "scale", "offset"):
            self.register_buffer(name, None, persistent=False)
        self._take(codes)

    def stored(self) -> dict[str, Tensor]:
        codes = (self.weight.short() + 2 ** (self.bits - 1)).to(torch.uint8)
        return {"codes": pack_codes(codes, self.bits)}

    def restore(self, stored: Mapping[str, Tensor]) -> None:
        rows, columns = self.weight.shape
        expected = (rows, packed_columns(columns, self.bits))
        if stored["codes"].shape != expected:
            raise ValueError(f"codes of the shape {tuple(stored['codes'].shape)}, expected {expected}")
        self._take(unpack_codes(stored["codes"].to(self.weight.device), self.bits, columns))

    def values(self) -> Tensor:
        """[R, C]: the weights."""
        return self.weight.to(self.scale.dtype).mul_(self.scale[:, None]).add_(self.offset[:, None])

    def _take(self, codes: Tensor) -> None:
        """Compute with `codes` uint8 [R, C], and the range of each group as it is now."""
        half = 2 ** (self.bits - 1)
        of = group_of_rows(len(codes), self.groups, codes.device)
        self.weight = (codes.short() - half).to(torch.int8)
        self.scale = self.step.float()[of]
        self.offset = self.minimum.float()[of] + half * self.scale

    def extra_repr(self) -> str:
        rows, columns = self.weight.shape
        return f"{rows} rows of {columns}, {self.bits} bits, {len(self.step)} groups"


class CodedLinear(CodedWeight):
    """x · Wᵀ + b, as the linear layer or `Conv1D` it is made of; a row is an output neuron."""

    def __init__(self, layer: nn.Linear | Conv1D, bits: int, groups: int) -> None:
        super().__init__(matrix(layer), bits, groups)
        self.out_features, self.in_features = self.weight.shape
        self.bias = layer.bias

    def forward(self, states: Tensor) -> Tensor:
        # a graph has one form for any number of inputs
        if not torch.compiler.is_exporting() and states.numel() > self.weight.numel():
            return linear(states, self.values(), self.bias)
        sums = states.sum(-1, keepdim=True)
        added = sums * self.offset if self.bias is None else torch.addcmul(self.bias, sums, self.offset)
        return torch.addcmul(added, linear(states, self.weight.to(states.dtype)), self.scale)


class CodedEmbedding(CodedWeight):
    """The rows of a table, as the embedding it is made of."""

    def __init__(self, layer: nn.Embedding, bits: int, groups: int) -> None:
        super().__init__(layer.weight, bits, groups)
        self.num_embeddings, self.embedding_dim = self.weight.shape
        self.padding_idx = layer.padding_idx

    def forward(self, ids: Tensor) -> Tensor:
        scale, offset = (embedding(ids, one[:, None]) for one in (self.scale, self.offset))
        return embedding(ids, self.weight) * scale + offset


def coded(module: nn.Module, bits: int, groups: int) -> CodedWeight:
    """The layer `module` with codes as its weights."""
    if isinstance(module, nn.Embedding):
        return CodedEmbedding(module, bits, groups)
    assert isinstance(module, (nn.Linear, Conv1D))
    return CodedLinear(module, bits, groups)
