"""bfloat16 copies of the weights that layers compute with.

Cast anew, they cost a pass over all weights in each step, and the joining of query, key and value another. An optimizer that asks
for it (`keep`) writes the copies where it writes the weights.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, MutableMapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary


@dataclass
class Kept:
    """The copy of one weight: `values` bfloat16 [O, I], or None until a layer has asked for it."""

    owner: weakref.ref[object]
    values: Tensor | None = None
    version: int = -1
    """That of the weight when it was copied."""
    place: int = 0
    """Where the weight lay then."""

    def is_of(self, weight: Tensor) -> bool:
        """Whether nobody but the owner has changed `weight` since."""
        return self.values is not None and self.version == weight._version and self.place == weight.data_ptr()

    def hold(self, values: Tensor, weight: Tensor) -> None:
        self.values, self.version, self.place = values, weight._version, weight.data_ptr()


_kept: MutableMapping[Tensor, Kept] = WeakIdKeyDictionary()
"""Weight → `Kept`."""


def keep(weights: Iterable[Tensor], owner: object) -> dict[Tensor, Kept]:
    """Keep the copies of `weights` as long as `owner` lives, who writes every change that it makes into `values` as well.

    A change that somebody else makes in place is noticed by the weight's version, and one of its memory by its address. What is
    written through `.data`, or by torch's fused optimizers, leaves neither: nobody else may do that while `owner` trains.
    """
    entries = {weight: Kept(weakref.ref(owner)) for weight in weights}
    _kept.update(entries)
    return entries


def narrow(*weights: Tensor) -> Tensor:
    """bfloat16 [sum of O, I]: `weights` [O, I], one below the other. Kept ones are cast once, in memory that stays theirs."""
    entries: list[Kept] = [kept for one in weights if (kept := _kept.get(one)) is not None and kept.owner() is not None]
    if len(entries) < len(weights):
        return torch.cat([one.bfloat16() for one in weights]) if len(weights) > 1 else weights[0].bfloat16()
    with torch.no_grad():
        if all(kept.values is None for kept in entries):
            whole = torch.empty(sum(map(len, weights)), weights[0].shape[1], dtype=torch.bfloat16)
            end = 0
            for kept, weight in zip(entries, weights, strict=True):
                begin, end = end, end + len(weight)
                kept.hold(whole[begin:end].copy_(weight), weight)
            return whole
        for kept, weight in zip(entries, weights, strict=True):
            if not kept.is_of(weight):
                kept.hold(weight.bfloat16() if kept.values is None else kept.values.copy_(weight), weight)
        parts = [kept.values for kept in entries if kept.values is not None]
        return _joined(parts)


def _joined(parts: list[Tensor]) -> Tensor:
    """`parts` [O, I] one below the other: without a copy where they lie so in memory."""
    first = parts[0]
    if len(parts) == 1:
        return first
    end = first.data_ptr()
    for part in parts:
        if part.data_ptr() != end or part.untyped_storage().data_ptr() != first.untyped_storage().data_ptr():
            return torch.cat(parts)
        end += part.nbytes
    return first.as_strided((sum(map(len, parts)), first.shape[1]), first.stride())
