"""When two results are equal."""

from __future__ import annotations

import torch
from torch import Tensor

ROUNDING = {torch.bfloat16: 2**-8, torch.float32: 2e-6}


def close(ours: Tensor | None, theirs: Tensor | None, kind: torch.dtype, more: float = 1.0) -> None:
    """Equal up to the rounding of `kind`, of the largest value."""
    assert ours is not None and theirs is not None
    scale = theirs.detach().abs().max().item()
    assert (ours.detach().double() - theirs.detach().double()).abs().max().item() <= more * ROUNDING[kind] * scale
