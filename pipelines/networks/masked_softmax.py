"""The softmax of attention scores under a mask, with dropout."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import dropout

from pipelines.networks.operation import Operation


def _plain_torch(scores: Tensor, mask: Tensor | None, scaling: float, rate: float) -> Tensor:
    masked = scores * scaling if mask is None else scores * scaling + mask
    return dropout(torch.softmax(masked, dim=-1), rate)


masked_softmax = Operation(_plain_torch)
"""`masked_softmax(scores, mask, scaling, rate)`: [B, heads, Q, K], the softmax over K of `scores` · `scaling` + `mask`,
with dropout at `rate`."""
