"""Logits over a vocabulary that are computed when they are first read.

A loss that is the only reader of the logits of a batch needs neither a product with a bias nor separate memory for
logits and gradient: it takes the states and the layer, and computes the logits itself. Any other reader gets them as
the layer would have returned them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import isdatadescriptor
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_map_only

from pipelines.parts.accelerators.cpu_kernels.eligibility import trains_in_bfloat16
from pipelines.parts.accelerators.cpu_kernels.linear import KernelLinear, SharedInputLayers

METADATA: frozenset[Any] = frozenset(
    attribute.__get__ if isdatadescriptor(attribute) else attribute  # of a property, its getter
    for attribute in (
        Tensor.shape, Tensor.ndim, Tensor.dtype, Tensor.device, Tensor.layout, Tensor.requires_grad, Tensor.is_cuda,
        Tensor.size, Tensor.dim, Tensor.numel, Tensor.is_floating_point, Tensor.__len__,
    )
)  # fmt: skip
"""Attributes and methods that do not need the logits."""


class LazyLogits(Tensor):
    """[..., V] in bfloat16: the output of `layer` for `states` [..., I], computed when it is first read."""

    states: Tensor
    layer: nn.Linear
    _logits: Tensor | None

    @staticmethod
    def __new__(cls, states: Tensor, layer: nn.Linear) -> LazyLogits:
        shape = (*states.shape[:-1], layer.out_features)
        self: LazyLogits = torch.Tensor._make_wrapper_subclass(cls, shape, dtype=torch.bfloat16, requires_grad=True)
        self.states, self.layer, self._logits = states, layer, None
        return self

    @property
    def computed(self) -> bool:
        """Whether the logits have been computed."""
        return self._logits is not None

    def logits(self) -> Tensor:
        """The logits as a plain tensor, computed once."""
        if self._logits is None:
            self._logits = SharedInputLayers([self.layer])(self.layer, self.states)
        return self._logits

    @classmethod
    def __torch_function__(
        cls,
        function: Callable[..., Any],
        types: Sequence[type],
        arguments: Sequence[Any] = (),
        named: Mapping[str, Any] | None = None,
    ) -> Any:
        if function in METADATA:
            with torch._C.DisableTorchFunctionSubclass():
                return function(*arguments, **(named or {}))
        arguments, named = tree_map_only(LazyLogits, LazyLogits.logits, (tuple(arguments), dict(named or {})))
        return function(*arguments, **named)

    @classmethod
    # typed more loosely there
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise RuntimeError(f"{func} reads the memory of logits that are not computed yet; pass it `logits()`")


class VocabularyLinear(KernelLinear):
    """The output layer of a network, whose logits are lazy while it trains."""

    def forward(self, states: Tensor) -> Tensor:
        return LazyLogits(states, self) if trains_in_bfloat16(states, self.weight) else super().forward(states)
