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

from pipelines.networks.masked_softmax import masked_softmax
from pipelines.parts.accelerators.cpu_kernels.dropout import Draw, drawn
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, REAL, SEED, SHARE, SIZE, Kernel, computable

NAME = "plain_products"
"""In transformers' registry of attention functions."""

SIZES = ctypes.POINTER(c_ssize_t)
SOFTMAX = Kernel(
    "cursus_softmax", *[POINTER] * 3, SIZES, SIZES, POINTER, POINTER, SIZE, REAL, SEED, SHARE, REAL, FLAG, FLAG
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
        chances = torch.empty_like(scores)
        result = torch.empty_like(scores) if draw.dropped else chances
        softmax(scores, mask, None, scaling, draw, chances, result)
        ctx.save_for_backward(chances)
        ctx.scaling, ctx.draw = scaling, draw
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None, None]:
        (chances,) = ctx.saved_tensors
        result = torch.empty_like(chances)
        softmax_backward(outer[0].contiguous(), chances, result, ctx.scaling, ctx.draw)
        return result, None, None, None


class DrawnAttention(torch.autograd.Function):
    """`apply(query [B, heads, Q, H], key, value [B, heads, K, H], mask, bias, scaling, draw)`: the context [B, heads, Q, H].

    All three are of one kind, bfloat16 or float32. `mask` and `bias` are float32 and broadcast to [B, heads, Q, K], or None; they
    are added to the scaled scores, and the bias has a gradient.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        bias: Tensor | None,
        scaling: float,
        draw: Draw,
    ) -> Tensor:
        batch, heads, rows, _ = query.shape
        # heads are strided views: a product of them turned would copy against the grain
        query, key, value = (one.contiguous().flatten(0, 1) for one in (query, key, value))
        weights = torch.bmm(query, key.transpose(1, 2))
        shaped = weights.view(batch, heads, rows, -1)
        chances = torch.empty_like(shaped) if draw.dropped else shaped
        softmax(shaped, mask, bias, scaling, draw, chances, shaped)
        ctx.save_for_backward(query, key, value, chances, weights)
        ctx.scaling, ctx.draw, ctx.bias = scaling, draw, None if bias is None else bias.shape
        return torch.bmm(weights, value).view(batch, heads, rows, -1)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, chances, weights = ctx.saved_tensors
        (batch, heads), needs = outer[0].shape[:2], ctx.needs_input_grad
        gradient = outer[0].contiguous().flatten(0, 1)
        to_value = torch.bmm(weights.transpose(1, 2), gradient)
        slopes = torch.bmm(gradient, value.transpose(1, 2))
        softmax_backward(slopes, chances, slopes, ctx.scaling, ctx.draw)
        to_query, to_key = torch.bmm(slopes, key), torch.bmm(slopes.transpose(1, 2), query)
        to_bias: Tensor | None = None
        if needs[4]:
            to_bias = summed(slopes.view(chances.shape), ctx.bias).div_(ctx.scaling)
        shaped = (one.view(batch, heads, *one.shape[1:]) for one in (to_query, to_key, to_value))
        return *shaped, None, to_bias, None, None


def softmax(
    scores: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    scaling: float,
    draw: Draw,
    chances: Tensor,
    result: Tensor,
) -> None:
    """Write into `chances` the softmax of `scores` [B, heads, Q, K] · `scaling` + `mask` + `bias`, and into `result` what dropout
    leaves of it: any of the three may be the same memory, these two where nothing is dropped."""
    *outer, width = scores.shape
    added = [None if one is None else one.expand(scores.shape) for one in (mask, bias)]
    strides = [stride for one in added for stride in ((0, 0, 0) if one is None else one.stride()[:3])]
    SOFTMAX(
        scores.data_ptr(), *(None if one is None else one.data_ptr() for one in added), (c_ssize_t * 3)(*outer),
        (c_ssize_t * 6)(*strides), chances.data_ptr(), result.data_ptr(), width, scaling, draw.seed, draw.dropped, draw.scale,
        torch.get_num_threads(), int(scores.dtype is torch.bfloat16),
    )  # fmt: skip


def softmax_backward(gradient: Tensor, chances: Tensor, result: Tensor, scaling: float, draw: Draw) -> None:
    """Write into `result`, which may be `gradient`, that of the scores before they are scaled."""
    width = chances.shape[-1]
    SOFTMAX_BACKWARD(
        gradient.data_ptr(), chances.data_ptr(), result.data_ptr(), chances.numel() // width, width, scaling, draw.seed,
        draw.dropped, draw.scale, torch.get_num_threads(), int(chances.dtype is torch.bfloat16),
    )  # fmt: skip


def summed(values: Tensor, shape: torch.Size) -> Tensor:
    """float32 `shape`: the sums of `values` where they were broadcast from it."""
    shape = torch.Size((1,) * (values.dim() - len(shape)) + tuple(shape))
    places = [at for at, size in enumerate(shape) if size == 1]
    return values.sum(places, keepdim=True, dtype=torch.float32) if places else values.float()


def readable(mask: Tensor, width: int) -> Tensor:
    """float32 [..., `width`] of a mask [..., `width` or 1]: the kernel reads a row of it one after the other."""
    mask = mask.expand(*mask.shape[:-1], width)
    return mask if mask.dtype is torch.float32 and mask.stride(-1) == 1 else mask.float().contiguous()


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
) -> tuple[Tensor, Tensor | None]:
    """[B, Q, heads, H] of `query` [B, heads, Q, H], `key` and `value` [B, heads, K, H], as transformers asks for it.

    `attention_mask` is added to the scores and has no gradient; `position_bias` is, and has one. The weights are there where
    somebody may want them.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    rate = dropout if module.training else 0.0
    # hooks here are of those who record the weights
    wanted = module._forward_hooks or others.get("output_attentions")
    if not wanted and rate < 1 and _alike(query, key, value):
        width = key.shape[2]
        mask, bias = (None if one is None else readable(one, width) for one in (attention_mask, position_bias))
        context: Tensor = DrawnAttention.apply(query, key, value, mask, bias, scale, drawn(rate))  # type: ignore[no-untyped-call]  # torch does not type it
        return context.transpose(1, 2), None
    scores = torch.matmul(query, key.transpose(2, 3))
    if position_bias is not None:
        scores, scale = scores * scale + position_bias.to(scores.dtype), 1.0
    weights = masked_softmax(scores, attention_mask, scale, rate)
    return torch.matmul(weights, value).transpose(1, 2), weights


def _alike(*states: Tensor) -> bool:
    """Whether the kernels can read all of them, and autocast would change none."""
    kind = states[0].dtype
    changed = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is not kind
    return not changed and all(one.dtype is kind and computable(one) for one in states)
