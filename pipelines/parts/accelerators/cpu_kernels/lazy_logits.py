"""Scores over a vocabulary that nobody has computed yet.

A loss that alone reads the scores of a batch needs no product with a bias in it, nor the memory of scores beside that of their
gradient: it takes the states and the layer, and computes the scores itself. Everybody else gets them as the layer would
have said them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import isdatadescriptor
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from pipelines.parts.accelerators.cpu_kernels.block import trains_narrow
from pipelines.parts.accelerators.cpu_kernels.linear import Linear, Together

DESCRIBED: frozenset[Any] = frozenset(
    said.__get__ if isdatadescriptor(said) else said  # of a property, what reads it
    for said in (
        Tensor.shape, Tensor.ndim, Tensor.dtype, Tensor.device, Tensor.layout, Tensor.requires_grad, Tensor.is_cuda, Tensor.size,
        Tensor.dim, Tensor.numel, Tensor.is_floating_point, Tensor.__len__,
    )
)  # fmt: skip
"""What is known without the scores."""


class Projection(Tensor):
    """[..., V] in bfloat16: what `layer` will say of `states` [..., I], once somebody asks for it."""

    states: Tensor
    layer: nn.Linear
    _scores: Tensor | None

    @staticmethod
    def __new__(cls, states: Tensor, layer: nn.Linear) -> Projection:
        shape = (*states.shape[:-1], layer.out_features)
        self: Projection = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.bfloat16, requires_grad=True)
        self.states, self.layer, self._scores = states, layer, None
        return self

    @property
    def computed(self) -> bool:
        """Whether somebody has asked for the scores."""
        return self._scores is not None

    def scores(self) -> Tensor:
        """The scores themselves, computed once."""
        if self._scores is None:
            self._scores = Together([self.layer])(self.layer, self.states)
        return self._scores

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Sequence[type],
        arguments: Sequence[Any] = (),
        named: Mapping[str, Any] | None = None,
    ) -> Any:
        if function in DESCRIBED:
            with torch._C.DisableTorchFunctionSubclass():
                return function(*arguments, **(named or {}))
        arguments, named = tree_map_only(Projection, Projection.scores, (tuple(arguments), dict(named or {})))
        return function(*arguments, **named)

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]  # told more loosely there
        raise RuntimeError(f"{func} wants the memory of scores that are not computed: give it `scores()`")


class VocabularyLinear(Linear):
    """The layer that says a network's scores: while it trains, only when it is asked to."""

    def forward(self, states: Tensor) -> Tensor:
        return Projection(states, self) if trains_narrow(states, self.weight) else super().forward(states)
