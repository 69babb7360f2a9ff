"""Linear layers of torch and of transformers (`Conv1D`), made narrower."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D


def is_projection(module: nn.Module) -> bool:
    """Whether the functions of this module know the layer."""
    return type(module) in (nn.Linear, Conv1D)


def axis_of(projection: nn.Module, *, inputs: bool) -> int:
    """The axis of the weight that runs over inputs or outputs."""
    return int(inputs != isinstance(projection, Conv1D))


def width_of(projection: nn.Module, *, inputs: bool) -> int:
    """Number of inputs or outputs of a linear layer."""
    weight = projection.weight
    assert isinstance(weight, Tensor)
    return int(weight.shape[axis_of(projection, inputs=inputs)])


@torch.no_grad()
def select(projection: Any, kept: Tensor, *, inputs: bool) -> None:
    """Keep the inputs or outputs `kept` of a linear layer."""
    axis = axis_of(projection, inputs=inputs)
    projection.weight = nn.Parameter(projection.weight.index_select(axis, kept.to(projection.weight.device)).clone())
    if not inputs and projection.bias is not None:
        projection.bias = nn.Parameter(projection.bias[kept.to(projection.bias.device)].clone())
    sizes = {"in_features": len(kept), "nx": len(kept)} if inputs else {"out_features": len(kept), "nf": len(kept)}
    for key, value in sizes.items():
        if hasattr(projection, key):
            setattr(projection, key, value)
