"""Operations whose implementation an accelerator may replace.

masked_softmax = Operation(_plain_torch)       # in the network's module: the definition, in plain torch
masked_softmax(scores, mask, scaling, rate)    # called like a function
masked_softmax.replace(_in_the_kernel)         # in the accelerator: returns NotImplemented where it does not apply
"""

from __future__ import annotations

from collections.abc import Callable
from types import NotImplementedType
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Operation(Generic[P, R]):
    """A function with a reference definition in plain torch, and faster implementations that are tried first.

    An implementation computes the same result up to rounding, or returns NotImplemented.
    """

    def __init__(self, definition: Callable[P, R]) -> None:
        self.definition = definition
        self._implementations: dict[str, Callable[P, R | NotImplementedType]] = {}

    def __call__(self, *arguments: P.args, **named: P.kwargs) -> R:
        for implementation in self._implementations.values():
            result = implementation(*arguments, **named)
            if not isinstance(result, NotImplementedType):
                return result
        return self.definition(*arguments, **named)

    def replace(self, implementation: Callable[P, R | NotImplementedType]) -> None:
        """Try `implementation` before the definition. Registering it again has no effect."""
        self._implementations[f"{implementation.__module__}.{implementation.__qualname__}"] = implementation
