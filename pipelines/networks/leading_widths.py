"""Narrower networks inside one: the first heads and the first neurons of every layer (Hou et al. 2020, DynaBERT §2.1).

A network whose heads and neurons are in the order of their importance holds a sub-network for every share of its width.
Its output is that of the whole network in which the other heads and neurons give 0: so it trains, together with others,
and so it is cut out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from pipelines.networks.attention_heads import AttentionHeads, remove_heads
from pipelines.networks.projections import select, width_of

if TYPE_CHECKING:
    from pipelines.parts.architectures import LayerNames

Hook: TypeAlias = Callable[[nn.Module, tuple[Tensor, ...]], tuple[Tensor, ...]]


@dataclass(frozen=True)
class WidthLayer:
    """One layer: its heads, and the linear layers around its neurons."""

    heads: AttentionHeads
    inner: nn.Module
    outer: nn.Module

    @property
    def path(self) -> str:
        """Path of the layer below the backbone."""
        return self.heads.path

    @property
    def neurons(self) -> int:
        """Number of neurons."""
        return width_of(self.inner, inputs=False)


def width_layers(backbone: nn.Module, stacks: Mapping[str, LayerNames], size: int) -> list[WidthLayer]:
    """The layers of `backbone`, whose heads are `size` wide; none where a layer has something else for each head or
    neuron, so that these cannot be left out alone."""
    if any(names.heads is None or names.feed_forward is None for names in stacks.values()):
        return []
    layers = [
        WidthLayer(
            AttentionHeads(f"{path}.{index}", layer, *names.heads, size),
            *(layer.get_submodule(name) for name in names.feed_forward),
        )
        for path, names in stacks.items()
        if names.heads is not None and names.feed_forward is not None
        for index, layer in enumerate(backbone.get_submodule(path).children())
    ]
    # an accelerator's linear layers are subclasses of torch's
    known = all(isinstance(module, nn.Linear | Conv1D) for one in layers for module in (one.inner, one.outer))
    return layers if known else []


def leading(count: int, share: float) -> int:
    """How many of `count` heads or neurons a sub-network of `share` of the width has: at least one."""
    return max(1, round(count * share))


@contextmanager
def at_width(layers: Sequence[WidthLayer], share: float) -> Iterator[None]:
    """Let the network of `layers` compute as its sub-network of `share` of the width while the context lasts."""
    handles = [
        module.register_forward_pre_hook(_leading_inputs(kept))
        for one in layers
        for module, count, size in (
            (one.heads.layer.get_submodule(one.heads.output), one.heads.count, one.heads.size),
            (one.outer, one.neurons, 1),
        )
        if (kept := leading(count, share) * size) < count * size
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def reorder(layers: Sequence[WidthLayer], heads: Sequence[Sequence[int]], neurons: Sequence[Sequence[int]]) -> None:
    """Put the heads and neurons of each layer into the order of their numbers in `heads` and `neurons`. The network
    computes what it did."""
    for one, order, of_neurons in zip(layers, heads, neurons, strict=True):
        size, whole = one.heads.size, one.heads.count * one.heads.size
        assert sorted(order) == list(range(one.heads.count)) and sorted(of_neurons) == list(range(one.neurons))
        columns = torch.cat([torch.arange(head * size, (head + 1) * size) for head in order])
        for path in one.heads.projections:
            projection = one.heads.layer.get_submodule(path)
            parts = width_of(projection, inputs=False) // whole  # a single one gives query, key and value
            select(projection, torch.cat([columns + part * whole for part in range(parts)]), inputs=False)
        select(one.heads.layer.get_submodule(one.heads.output), columns, inputs=True)
        kept = torch.tensor(list(of_neurons))
        select(one.inner, kept, inputs=False)
        select(one.outer, kept, inputs=True)


def cut(layers: Sequence[WidthLayer], heads: Mapping[str, int], neurons: Mapping[str, int]) -> None:
    """Keep the first `heads` and the first `neurons` of each layer, by its path; what is left is what `at_width`
    computes."""
    remove_heads(
        [one.heads for one in layers],
        {one.path: range(heads[one.path], one.heads.count) for one in layers if heads[one.path] < one.heads.count},
    )
    for one in layers:
        if neurons[one.path] < one.neurons:
            kept = torch.arange(neurons[one.path])
            select(one.inner, kept, inputs=False)
            select(one.outer, kept, inputs=True)


def _leading_inputs(kept: int) -> Hook:
    """A hook that sets the inputs of a linear layer to 0 but for the first `kept`."""

    def keep(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        states = inputs[0]
        return (states * (torch.arange(states.shape[-1], device=states.device) < kept), *inputs[1:])

    return keep
