"""Cross-entropy over a vocabulary and its gradient, in one pass over the scores."""

from __future__ import annotations

import torch
from torch import Tensor

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, PARTS, POINTER, REAL, SIZE, VECTOR, Kernel

GROUP = 4
"""Rows that a thread holds in float32 at a time, each padded to whole vectors."""

CROSS_ENTROPY = Kernel("cursus_cross_entropy", *[POINTER] * 7, SIZE, SIZE, SIZE, REAL, FLAG, FLAG)


def cross_entropy(
    scores: Tensor,
    targets: Tensor,
    share: float,
    *,
    bias: Tensor | None = None,
    gradient: Tensor | None = None,
    sum_gradient: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Loss float32 [N] of each row of `scores` [N, V] + `bias` float32 [V], contiguous; 0 where the target is negative.

    The gradient of `share` times the sum of the losses is written into `gradient` [N, V], which may be `scores` itself;
    with `sum_gradient` its sum over N is returned as well: float32 [V]. Targets must be less than V.
    """
    rows, width = scores.shape
    threads = torch.get_num_threads()
    losses, scratch = torch.empty(rows), torch.empty(threads, GROUP, -(-width // VECTOR) * VECTOR)
    sums = torch.empty(PARTS, width) if sum_gradient else None
    optional = [None if one is None else one.data_ptr() for one in (bias, gradient, sums)]
    CROSS_ENTROPY(
        scores.data_ptr(), optional[0], targets.data_ptr(), losses.data_ptr(), optional[1], optional[2],
        scratch.data_ptr(), rows, width, PARTS, share, threads, int(scores.dtype is torch.bfloat16),
    )  # fmt: skip
    return losses, None if sums is None else sums.sum(0)
