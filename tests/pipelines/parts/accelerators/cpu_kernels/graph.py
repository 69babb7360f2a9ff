"""What has computed a tensor."""

from __future__ import annotations

from torch import Tensor


def functions(result: Tensor) -> set[str]:
    """The names of all functions in its graph."""
    found, left, names = set(), [result.grad_fn], set()
    while left:
        one = left.pop()
        if one is not None and one not in found:
            found.add(one)
            names.add(one.name())
            left += [before for before, _ in one.next_functions]
    return names
