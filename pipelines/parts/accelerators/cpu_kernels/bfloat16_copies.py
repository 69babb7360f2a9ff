"""bfloat16 copies of the weights that layers compute with.

Casting in every step costs a pass over all weights, and concatenating query, key and value another. An optimizer that
registers its weights (`register_copies`) updates the copies together with the weights.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary


@dataclass
class WeightCopy:
    """The copy of one weight: `values` bfloat16 [O, I], or None until a layer first uses it."""

    owner: weakref.ref[object]
    values: Tensor | None = None
    version: int = -1
    """Version counter of the weight when it was copied."""
    address: int = 0
    """Memory address of the weight when it was copied."""

    def is_current(self, weight: Tensor) -> bool:
        """Whether `weight` was changed by its owner only since it was copied."""
        return self.values is not None and self.version == weight._version and self.address == weight.data_ptr()

    def update(self, values: Tensor, weight: Tensor) -> None:
        """Record `values` as the copy of `weight` as it is now."""
        self.values, self.version, self.address = values, weight._version, weight.data_ptr()


_copies: MutableMapping[Tensor, WeightCopy] = WeakIdKeyDictionary()
"""Weight → its copy."""


def register_copies(weights: Iterable[Tensor], owner: object) -> dict[Tensor, WeightCopy]:
    """Keep copies of `weights` as long as `owner` lives, which must write every change of a weight into `values` as
    well.

    An in-place change by other code is detected by the weight's version counter, and a change of its memory by its
    address. Writes through `.data` or by torch's fused optimizers change neither: nothing else may make them while
    `owner` trains.
    """
    entries = {weight: WeightCopy(weakref.ref(owner)) for weight in weights}
    _copies.update(entries)
    return entries


def bfloat16_weights(*weights: Tensor) -> Tensor:
    """bfloat16 [sum of O, I]: `weights` [O, I], concatenated.

    Registered weights are cast once, into memory that they keep.
    """
    entries: list[WeightCopy] = [
        copy for one in weights if (copy := _copies.get(one)) is not None and copy.owner() is not None
    ]
    if len(entries) < len(weights):
        return torch.cat([one.bfloat16() for one in weights]) if len(weights) > 1 else weights[0].bfloat16()
    with torch.no_grad():
        if all(copy.values is None for copy in entries):
            joined = torch.empty(sum(map(len, weights)), weights[0].shape[1], dtype=torch.bfloat16)
            end = 0
            for copy, weight in zip(entries, weights, strict=True):
                begin, end = end, end + len(weight)
                copy.update(joined[begin:end].copy_(weight), weight)
            return joined
        for copy, weight in zip(entries, weights, strict=True):
            if not copy.is_current(weight):
                copy.update(weight.bfloat16() if copy.values is None else copy.values.copy_(weight), weight)
        parts = [copy.values for copy in entries if copy.values is not None]
        return _concatenated(parts)


def _concatenated(parts: list[Tensor]) -> Tensor:
    """`parts` [O, I], concatenated: a view where they are contiguous in memory, else a copy."""
    first = parts[0]
    if len(parts) == 1:
        return first
    end = first.data_ptr()
    for part in parts:
        if part.data_ptr() != end or part.untyped_storage().data_ptr() != first.untyped_storage().data_ptr():
            return torch.cat(parts)
        end += part.nbytes
    return first.as_strided((sum(map(len, parts)), first.shape[1]), first.stride())
