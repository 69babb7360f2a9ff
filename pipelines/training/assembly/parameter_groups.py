"""Parameter groups of a network by depth, as changed by the strategies of a stage."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pipelines.parts.strategies import ParameterGroup, Strategy

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

    from pipelines.parts.optimizers import Optimizer


def trainable_groups(
    network: PreTrainedModel, strategies: Sequence[Strategy], lr: float, weight_decay: float
) -> list[ParameterGroup]:
    """The groups that train. Weight decay applies to matrices, not to biases and normalisation gains."""
    groups = groups_by_depth(network, lr, weight_decay)
    for strategy in strategies:
        groups = strategy.groups(groups)
    return [group for group in groups if group.parameters]


def groups_by_depth(network: PreTrainedModel, lr: float, weight_decay: float) -> list[ParameterGroup]:
    """One group for the matrices and one for the vectors of every depth, from the embeddings up.

    The layers of a backbone are its outermost lists of modules, in order (those of an encoder, then those of a
    decoder); modules before the first layer count as embeddings, modules after a layer belong to that layer.
    """
    backbone = network.base_model
    layers = [f"{name}.{i}." for name, module in _outermost_lists(backbone) for i in range(len(module))]
    prefix = "" if backbone is network else network.base_model_prefix + "."
    collected: dict[tuple[int, bool], list[tuple[str, nn.Parameter]]] = {}
    depth = 0
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad:
            continue
        group_depth = len(layers) + 1
        if name.startswith(prefix):
            inside = name.removeprefix(prefix)
            depth = next((at for at, layer in enumerate(layers, 1) if inside.startswith(layer)), depth)
            group_depth = depth
        collected.setdefault((group_depth, parameter.ndim > 1), []).append((name, parameter))
    return [
        ParameterGroup(group_depth, len(layers), parameters, lr, weight_decay if matrices else 0.0)
        for (group_depth, matrices), parameters in sorted(
            collected.items(), key=lambda item: (item[0][0], not item[0][1])
        )
    ]


def optimizer_groups(
    groups: Sequence[ParameterGroup], network: nn.Module, companions: Iterable[nn.Module], optimizer: Optimizer
) -> list[dict[str, Any]]:
    """Parameter groups for a torch optimizer: those of `network`, and the parameters of `companions` that it does not
    share.

    An optimizer calls its kernel once per group: depths with the same settings are merged.
    """
    merged: dict[tuple[float, float, bool], list[nn.Parameter]] = {}
    for group in groups:
        settings = (group.lr, group.weight_decay, group.is_head)
        merged.setdefault(settings, []).extend(value for _, value in group.parameters)
    shared = {id(parameter) for parameter in network.parameters()}
    for companion in companions:
        own = [parameter for parameter in companion.parameters() if id(parameter) not in shared]
        for decay, matrices in ((optimizer.weight_decay, True), (0.0, False)):
            parameters = [parameter for parameter in own if (parameter.ndim > 1) is matrices]
            merged.setdefault((optimizer.lr, decay, True), []).extend(parameters)
    return [
        {"params": parameters, "lr": lr, "weight_decay": decay, "is_head": is_head}
        for (lr, decay, is_head), parameters in merged.items()
    ]


def _outermost_lists(module: nn.Module, prefix: str = "") -> Iterator[tuple[str, nn.ModuleList]]:
    from torch import nn

    for name, child in module.named_children():
        if isinstance(child, nn.ModuleList):
            yield prefix + name, child
        else:
            yield from _outermost_lists(child, f"{prefix}{name}.")
