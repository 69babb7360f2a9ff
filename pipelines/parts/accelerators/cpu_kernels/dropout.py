"""Dropout whose mask is drawn again where it is needed again (Srivastava et al. 2014), in one pass over its input.

torch draws one number after the other from one generator, and keeps the mask. Here Philox 4x32-10 (Salmon et al. 2011), a
function of a seed and a place, draws sixteen at a time, again for the gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as plain

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, REAL, SEED, SHARE, SIZE, Kernel, computable

DECISIONS = 1 << 16
"""Of each place 16 random bits decide, so that a rate is met to 8e-6."""

DROPOUT = Kernel("cursus_dropout", POINTER, POINTER, SIZE, SEED, SHARE, REAL, FLAG, FLAG, FLAG)
PHILOX = Kernel("cursus_philox", SEED, SEED, POINTER)
"""The random words themselves, sixteen blocks of them: for whoever wants to see that they are the paper's."""


class Draw(NamedTuple):
    """What a mask is made of."""

    seed: int
    dropped: int
    """Of DECISIONS."""

    @property
    def scale(self) -> float:
        """What is kept is multiplied by it, so that the mean stays."""
        return DECISIONS / (DECISIONS - self.dropped)


def drawn(rate: float) -> Draw:
    """A draw for the next mask, from torch's generator; one that drops nothing takes no number from it."""
    dropped = round(rate * DECISIONS)
    seed = int(torch.randint(-(2**63), 2**63 - 1, ()).item()) if dropped else 0
    return Draw(seed, dropped)


class DrawnDropout(torch.autograd.Function):
    """`apply(values, draw)`: each value is 0 or scaled up. Its gradient is the same function of the gradient."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, draw: Draw) -> Tensor:
        ctx.draw = draw
        return masked(values, draw, values.dtype)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None]:
        return masked(outer[0], ctx.draw, outer[0].dtype), None


def masked(values: Tensor, draw: Draw, dtype: torch.dtype) -> Tensor:
    """`values` [...], bfloat16 or float32, as `draw` leaves them, as wide as `dtype`: one of the two."""
    values = values.contiguous()
    result = torch.empty_like(values, dtype=dtype)
    DROPOUT(
        values.data_ptr(), result.data_ptr(), values.numel(), draw.seed, draw.dropped, draw.scale, torch.get_num_threads(),
        int(values.dtype is torch.bfloat16), int(dtype is torch.bfloat16),
    )  # fmt: skip
    return result


def dropout(values: Tensor, rate: float) -> Tensor:
    """`values` [...] with a share of about `rate` of them 0 and the others scaled up."""
    if not computable(values) or not 0 < rate < 1:
        return plain(values, rate)
    result: Tensor = DrawnDropout.apply(values, drawn(rate))  # type: ignore[no-untyped-call]  # torch does not type it
    return result


class Dropout(nn.Dropout):
    """torch's module, over the kernel while it trains."""

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or self.inplace or self.p == 0:
            return super().forward(values)
        return dropout(values, self.p)
