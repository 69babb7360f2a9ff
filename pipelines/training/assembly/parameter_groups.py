"""The parameters of any network as groups by depth, as its strategies change them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pipelines.parts.strategies import Group, Strategy

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel


def groups_of(network: PreTrainedModel, strategies: Sequence[Strategy], lr: float, weight_decay: float) -> list[Group]:
    """The groups that train. Matrices decay towards zero, biases and normalisation gains do not."""
    groups = by_depth(network, lr, weight_decay)
    for strategy in strategies:
        groups = strategy.groups(groups)
    return [group for group in groups if group.parameters]


def by_depth(network: PreTrainedModel, lr: float, weight_decay: float) -> list[Group]:
    """One group for the matrices and one for the vectors of every depth, from the embeddings up.

    A body's layers are its outermost lists of modules, in order (those of an encoder, then those of a decoder); what stands
    before the first belongs to the embeddings, what follows a layer belongs to that layer.
    """
    body = network.base_model
    layers = [f"{name}.{i}." for name, module in _outermost_lists(body) for i in range(len(module))]
    prefix = "" if body is network else network.base_model_prefix + "."
    collected: dict[tuple[int, bool], list[tuple[str, nn.Parameter]]] = {}
    depth = 0
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:
            continue
        place = len(layers) + 1
        if name.startswith(prefix):
            inside = name.removeprefix(prefix)
            depth = next((at for at, layer in enumerate(layers, 1) if inside.startswith(layer)), depth)
            place = depth
        collected.setdefault((place, parameter.ndim > 1), []).append((name, parameter))
    return [
        Group(place, len(layers), parameters, lr, weight_decay if matrices else 0.0)
        for (place, matrices), parameters in sorted(collected.items(), key=lambda item: (item[0][0], not item[0][1]))
    ]


def _outermost_lists(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.ModuleList]]:
    from torch import nn

    for name, child in module.named_children():
        if isinstance(child, nn.ModuleList):
            yield prefix + name, child
        else:
            yield from _outermost_lists(child, f"{prefix}{name}.")
