"""Gates that weigh the neurons of feed-forward sub-layers, or whole layers, while a network computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

GatesOf: TypeAlias = Callable[[Tensor], Tensor]
"""States [rows, …] → the gates [rows, units] that weigh them."""


class GatedUnits(Protocol):
    """What gates weigh in one part of a network."""

    @property
    def path(self) -> str:
        """Path of the layer below the backbone."""

    @property
    def count(self) -> int:
        """Number of units."""

    def attach(self, gates_of: GatesOf) -> RemovableHandle:
        """Weigh the units by gates until the handle is removed."""


@dataclass(frozen=True)
class Neurons:
    """The inner neurons of a feed-forward sub-layer: a gate multiplies what a neuron gives to `outer`, the linear layer
    that reads them."""

    path: str
    outer: nn.Module
    count: int

    def attach(self, gates_of: GatesOf) -> RemovableHandle:
        def weigh(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            states = inputs[0]
            gates = gates_of(states)
            return (states * gates.view(len(gates), *(1,) * (states.ndim - 2), -1), *inputs[1:])

        return self.outer.register_forward_pre_hook(weigh)


@dataclass(frozen=True)
class WholeLayer:
    """A layer as a single unit: with the gate ξ, it gives x + ξ (f(x) − x) for its f(x), so that 0 skips it."""

    path: str
    layer: nn.Module
    count: int = 1

    def attach(self, gates_of: GatesOf) -> RemovableHandle:
        def weigh(module: nn.Module, inputs: tuple[Any, ...], named: dict[str, Any], output: Any) -> Any:
            before: Tensor = inputs[0] if inputs else named["hidden_states"]
            after: Tensor = output[0] if isinstance(output, tuple) else output
            gates = gates_of(before)
            weighed = before + gates.view(len(gates), *(1,) * (before.ndim - 1)) * (after - before)
            return (weighed, *output[1:]) if isinstance(output, tuple) else weighed

        return self.layer.register_forward_hook(weigh, with_kwargs=True)


@contextmanager
def gated(sites: Sequence[GatedUnits], masks: Sequence[Tensor]) -> Iterator[list[list[Tensor]]]:
    """Weigh the units of each of `sites` while the context lasts; `masks` holds for each the values of its gates.

    Yields for each of them a list that forward passes fill with the gates [rows, units] they used, one tensor for each
    call, whose gradient can be taken: a layer that the network uses several times has several.
    """
    used: list[list[Tensor]] = [[] for _ in sites]

    def gates_of(mask: Tensor, calls: list[Tensor]) -> GatesOf:
        def fresh(states: Tensor) -> Tensor:
            gates = mask.to(states).repeat(len(states), 1).requires_grad_()
            calls.append(gates)
            return gates

        return fresh

    handles = [one.attach(gates_of(mask, calls)) for one, mask, calls in zip(sites, masks, used, strict=True)]
    try:
        yield used
    finally:
        for handle in handles:
            handle.remove()
