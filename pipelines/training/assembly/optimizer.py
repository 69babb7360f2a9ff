"""The optimizer of a stage: an accelerator's AdamW, or the component that the recipe names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipelines.errors import RecipeError
from pipelines.parts.distributions import Distribution
from pipelines.parts.optimizers import Optimizer

if TYPE_CHECKING:
    import torch
    from torch import nn

    from pipelines.parts.accelerators import Accelerator


def create_optimizer(
    chosen: Optimizer,
    groups: list[dict[str, Any]],
    network: nn.Module,
    accelerators: Sequence[Accelerator],
    ranks: int,
) -> torch.optim.Optimizer:
    """The optimizer over torch's parameter `groups` of `network`, for training on `ranks` ranks.

    Accelerators replace an AdamW only. Raises RecipeError for an optimizer with sparse gradients on several ranks, and
    for parameters that an optimizer cannot train.
    """
    from torch import nn

    options = chosen.adamw_options()
    if options is not None:
        clip = math.inf if chosen.clip is None else chosen.clip
        for accelerator in accelerators:
            faster = accelerator.optimizer(groups, clip=clip, sparse=ranks == 1, options=options)
            if faster is not None:
                return faster
    if not chosen.trains_sharded and any(type(one) is not nn.Parameter for group in groups for one in group["params"]):
        raise RecipeError(
            f"optimizer {chosen.name}: it needs each matrix whole, but the distribution of this run shards them; set "
            f"training.distribution: {Distribution.default_name}"
        )
    if chosen.sparse_gradients:
        _look_up_sparsely(chosen, groups, network, ranks)
    return chosen.create(groups)


def _look_up_sparsely(chosen: Optimizer, groups: list[dict[str, Any]], network: nn.Module, ranks: int) -> None:
    """Give the embedding tables of `network` sparse gradients."""
    from torch import nn

    if ranks > 1:
        raise RecipeError(
            f"optimizer {chosen.name}: ranks do not exchange sparse gradients; set training.devices: 1, or use an "
            "optimizer with dense ones"
        )
    tables = [module for module in network.modules() if isinstance(module, nn.Embedding)]
    for table in tables:
        table.sparse = True
    known = {id(table.weight) for table in tables}
    names = {id(parameter): name for name, parameter in network.named_parameters()}
    dense = [one for group in groups for one in group["params"] if id(one) not in known]
    if dense and not chosen.trains_dense:
        raise RecipeError(
            f"optimizer {chosen.name}: {names.get(id(dense[0]), 'a companion')} is no embedding table and has a dense "
            f"gradient; use {Optimizer.default_name}"
        )
