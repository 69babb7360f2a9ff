"""Attention by plain matrix products, with mask, softmax and dropout of the scores in one pass between them.

On a CPU plain products beat torch's fused attention at the lengths of these models, forward and far more so backward. What
stands between them is five passes over the scores in torch (scaled, masked, cast, softmax, dropout), and six backward.
"""

from __future__ import annotations

import ctypes
from ctypes import c_ssize_t
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout as plain_dropout

from pipelines.kernels.dropout import Draw, drawn
from pipelines.kernels.library import FLAG, POINTER, REAL, SEED, SHARE, SIZE, Kernel, computable

NAME = "plain_products"
"""In transformers' registry of attention functions."""

SIZES = ctypes.POINTER(c_ssize_t)
SOFTMAX = Kernel(
    "cursus_softmax", POINTER, POINTER, SIZES, SIZES, POINTER, POINTER, SIZE, REAL, SEED, SHARE, REAL, FLAG, FLAG
)
SOFTMAX_BACKWARD = Kernel(
    "cursus_softmax_backward", POINTER, POINTER, POINTER, SIZE, SIZE, REAL, SEED, SHARE, REAL, FLAG, FLAG
)


class DrawnSoftmax(torch.autograd.Function):
    """`apply(scores [B, heads, Q, K], mask, scaling, draw)`: the softmax of scores · scaling + mask, after dropout.

    `mask` is float32 [B or 1, heads or 1, Q or 1, K], or None; it has no gradient.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None, scaling: float, draw: Draw) -> Tensor:
        scores = scores.contiguous()
        *outer, width = scores.shape
        strides = [0, 0, 0]
        if mask is not None:
            mask = mask.expand(scores.shape)
            strides = list(mask.stride()[:3])
        chances = torch.empty_like(scores)
        result = torch.empty_like(scores) if draw.dropped else chances
        half = int(scores.dtype is torch.bfloat16)
        SOFTMAX(
            scores.data_ptr(), None if mask is None else mask.data_ptr(), (c_ssize_t * 3)(*outer), (c_ssize_t * 3)(*strides),
            chances.data_ptr(), result.data_ptr(), width, scaling, draw.seed, draw.dropped, draw.scale,
            torch.get_num_threads(), half,
        )  # fmt: skip
        ctx.save_for_backward(chances)
        ctx.scaling, ctx.draw = scaling, draw
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None, None]:
        (chances,) = ctx.saved_tensors
        gradient, draw = outer[0].contiguous(), ctx.draw
        result, width = torch.empty_like(chances), chances.shape[-1]
        half = int(chances.dtype is torch.bfloat16)
        SOFTMAX_BACKWARD(
            gradient.data_ptr(), chances.data_ptr(), result.data_ptr(), chances.numel() // width, width, ctx.scaling,
            draw.seed, draw.dropped, draw.scale, torch.get_num_threads(), half,
        )  # fmt: skip
        return result, None, None, None


def readable(mask: Tensor, width: int) -> Tensor:
    """float32 [..., `width`] of a mask [..., `width` or 1]: the kernel reads a row of it one after the other."""
    mask = mask.expand(*mask.shape[:-1], width)
    return mask if mask.dtype is torch.float32 and mask.stride(-1) == 1 else mask.float().contiguous()


def masked_softmax(scores: Tensor, mask: Tensor | None, scaling: float, rate: float) -> Tensor:
    """[B, heads, Q, K]: the softmax of `scores` · `scaling` + `mask` over K, a share of `rate` of it dropped."""
    if not computable(scores):
        masked = scores * scaling if mask is None else scores * scaling + mask
        return plain_dropout(torch.softmax(masked, dim=-1), rate)
    if mask is not None:
        mask = readable(mask, scores.shape[-1])
    result: Tensor = DrawnSoftmax.apply(scores, mask, scaling, drawn(rate))  # type: ignore[no-untyped-call]  # torch does not type it
    return result


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    position_bias: Tensor | None = None,
    **others: Any,
) -> tuple[Tensor, Tensor]:
    """[B, Q, heads, H] of `query` [B, heads, Q, H], `key` and `value` [B, heads, K, H], as transformers asks for it.

    `attention_mask` is added to the scores and has no gradient; `position_bias` is, and has one.
    """
    scores = torch.matmul(query, key.transpose(2, 3))
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if position_bias is not None:
        scores, scale = scores * scale + position_bias.to(scores.dtype), 1.0
    weights = masked_softmax(scores, attention_mask, scale, dropout if module.training else 0.0)
    return torch.matmul(weights, value).transpose(1, 2), weights
