"""The heads of a network's self-attention: gates that weigh them, and their removal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from pipelines.networks.projections import select, width_of


@dataclass(frozen=True)
class AttentionHeads:
    """The self-attention of one layer. Heads lie one after the other in the outputs of query, key and value, and in the
    inputs of the output projection."""

    path: str
    """Path of the layer below the backbone."""
    layer: nn.Module
    projections: tuple[str, ...]
    """Paths below the layer of query, key and value; a single one computes all three."""
    output: str
    """Path below the layer of the output projection."""
    size: int
    """Width of a head."""

    @property
    def owner(self) -> nn.Module:
        """The module that computes attention: it holds the projections."""
        return self.layer.get_submodule(self.projections[0].rpartition(".")[0])

    @property
    def count(self) -> int:
        """Number of heads."""
        return width_of(self.layer.get_submodule(self.output), inputs=True) // self.size


@contextmanager
def gated(heads: Sequence[AttentionHeads], masks: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Multiply each head's output by a gate ξ while the context lasts (Michel et al. 2019, eq. 1).

    `masks` holds for each layer the values of its gates [heads]. Yields a list that each forward pass fills with the
    gates [rows, heads] it used, one tensor for each layer in order of computation, whose gradient can be taken.
    """
    used: list[Tensor] = []

    def hook(one: AttentionHeads, mask: Tensor) -> Any:
        def weigh(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            context = inputs[0]
            gates = mask.to(context).repeat(len(context), 1).requires_grad_()
            used.append(gates)
            parts = context.view(*context.shape[:-1], len(mask), one.size) * gates[:, None, :, None]
            return (parts.flatten(-2), *inputs[1:])

        return one.layer.get_submodule(one.output).register_forward_pre_hook(weigh)

    handles = [hook(one, mask) for one, mask in zip(heads, masks, strict=True)]
    try:
        yield used
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def remove_heads(heads: Sequence[AttentionHeads], removed: Mapping[str, Sequence[int]]) -> None:
    """Remove the rows of query, key and value and the columns of the output projection of the heads `removed`, by path
    of the layer. The outputs are those of the whole network with these heads gated by 0."""
    for one in heads:
        if one.path not in removed:
            continue
        gone = set(removed[one.path])
        kept = [head for head in range(one.count) if head not in gone]
        assert kept and gone < set(range(one.count)), (one.path, removed[one.path], one.count)
        columns = torch.cat([torch.arange(head * one.size, (head + 1) * one.size) for head in kept])
        whole = one.count * one.size
        for path in one.projections:
            projection = one.layer.get_submodule(path)
            parts = width_of(projection, inputs=False) // whole
            rows = torch.cat([columns + part * whole for part in range(parts)])
            select(projection, rows, inputs=False)
        select(one.layer.get_submodule(one.output), columns, inputs=True)
        for key, value in _sizes(len(kept), len(columns)).items():
            if hasattr(one.owner, key):
                setattr(one.owner, key, value)


def _sizes(heads: int, width: int) -> dict[str, int]:
    """Attributes in which attention modules of transformers keep their number of heads, and the width of all heads."""
    return {"num_attention_heads": heads, "num_heads": heads, "all_head_size": width, "split_size": width}
