"""Dropout (Srivastava et al. 2014) in one pass over its input, whose mask is recomputed for the gradient instead of
stored.

torch draws one number after the other from one generator, and stores the mask. Here Philox 4x32-10 (Salmon et al.
2011), a function of a seed and a position, draws sixteen at a time, and once more for the gradient.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as plain

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, REAL, SEED, SHARE, SIZE, Kernel, is_readable

DECISIONS = 1 << 16
"""Each element is dropped or kept by 16 random bits, so that the rate is exact to 8e-6."""

DROPOUT = Kernel("cursus_dropout", POINTER, POINTER, SIZE, SEED, SHARE, REAL, FLAG, FLAG, FLAG)
PHILOX = Kernel("cursus_philox", SEED, SEED, POINTER)
"""The random words themselves, sixteen blocks of them: tests compare them with the paper's."""


class DropoutDraw(NamedTuple):
    """The random realisation of one dropout mask."""

    seed: int
    dropped: int
    """Share of dropped elements, in units of 1 / DECISIONS."""

    @property
    def scale(self) -> float:
        """Factor of the elements that are kept, so that the mean does not change."""
        return DECISIONS / (DECISIONS - self.dropped)


def draw_dropout(rate: float) -> DropoutDraw:
    """A draw for the next mask, seeded by torch's generator; at rate 0 the generator does not advance."""
    dropped = round(rate * DECISIONS)
    seed = int(torch.randint(-(2**63), 2**63 - 1, ()).item()) if dropped else 0
    return DropoutDraw(seed, dropped)


class DropoutFunction(torch.autograd.Function):
    """`apply(values, draw)`: each value is set to 0 or scaled up.

    The backward applies the same mask to the gradient.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor, draw: DropoutDraw) -> Tensor:
        ctx.draw = draw
        return apply_dropout(values, draw, values.dtype)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None]:
        return apply_dropout(outer[0], ctx.draw, outer[0].dtype), None


def apply_dropout(values: Tensor, draw: DropoutDraw, dtype: torch.dtype) -> Tensor:
    """Dropout of `values` [...], bfloat16 or float32, by the mask of `draw`; the result has `dtype`, one of the two."""
    values = values.contiguous()
    result = torch.empty_like(values, dtype=dtype)
    DROPOUT(
        values.data_ptr(), result.data_ptr(), values.numel(), draw.seed, draw.dropped, draw.scale,
        torch.get_num_threads(), int(values.dtype is torch.bfloat16), int(dtype is torch.bfloat16),
    )  # fmt: skip
    return result


def dropout(values: Tensor, rate: float) -> Tensor:
    """`values` [...] with each set to 0 with probability `rate`, and the others scaled up."""
    if not is_readable(values) or not 0 < rate < 1:
        return plain(values, rate)
    # torch does not type it
    result: Tensor = DropoutFunction.apply(values, draw_dropout(rate))  # type: ignore[no-untyped-call]
    return result


class KernelDropout(nn.Dropout):
    """torch's dropout module, computed by the kernel while it trains."""

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or self.inplace or self.p == 0:
            return super().forward(values)
        return dropout(values, self.p)
