"""When two results are equal."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

ROUNDING = {torch.bfloat16: 2**-8, torch.float32: 2e-6}


def close(ours: Tensor | None, theirs: Tensor | None, kind: torch.dtype, more: float = 1.0) -> None:
    """Equal up to the rounding of `kind`, of the largest value."""
    assert ours is not None and theirs is not None
    scale = theirs.detach().abs().max().item()
    assert (ours.detach().double() - theirs.detach().double()).abs().max().item() <= more * ROUNDING[kind] * scale


def same_on_any_threads(computed: Callable[[], list[Tensor]]) -> list[Tensor]:
    """What is computed on one thread, which must be what three compute, bit by bit."""
    usual = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = computed()
        torch.set_num_threads(3)
        together = computed()
    finally:
        torch.set_num_threads(usual)
    assert all(torch.equal(one, other) for one, other in zip(alone, together, strict=True))
    return alone
