"""Attention by plain matrix products, with mask, softmax and dropout of the scores in one pass between them.

On a CPU plain products beat torch's fused attention at the lengths of these models, forward and far more so backward.
Between the products torch makes five passes over the scores (scale, mask, cast, softmax, dropout), and six in the
backward.
"""

from __future__ import annotations

import ctypes
from ctypes import c_ssize_t
from typing import Any

import torch
from torch import Tensor, nn

from pipelines.networks.masked_softmax import masked_softmax
from pipelines.parts.accelerators.cpu_kernels.dropout import DropoutDraw, draw_dropout
from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, REAL, SEED, SHARE, SIZE, Kernel, is_readable

NAME = "plain_products"
"""Key in transformers' registry of attention functions."""

SIZES = ctypes.POINTER(c_ssize_t)
SOFTMAX = Kernel(
    "cursus_softmax", *[POINTER] * 3, SIZES, SIZES, POINTER, POINTER, SIZE, REAL, SEED, SHARE, REAL, FLAG, FLAG
)
SOFTMAX_BACKWARD = Kernel(
    "cursus_softmax_backward", POINTER, POINTER, POINTER, SIZE, SIZE, REAL, SEED, SHARE, REAL, FLAG, FLAG
)


class SoftmaxFunction(torch.autograd.Function):
    """`apply(scores [B, heads, Q, K], mask, scaling, draw)`: the softmax of scores · scaling + mask, after dropout.

    `mask` is float32 [B or 1, heads or 1, Q or 1, K], or None; it has no gradient.
    """

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor | None, scaling: float, draw: DropoutDraw) -> Tensor:
        scores = scores.contiguous()
        probabilities = torch.empty_like(scores)
        result = torch.empty_like(scores) if draw.dropped else probabilities
        softmax(scores, mask, None, scaling, draw, probabilities, result)
        ctx.save_for_backward(probabilities)
        ctx.scaling, ctx.draw = scaling, draw
        return result

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None, None]:
        (probabilities,) = ctx.saved_tensors
        result = torch.empty_like(probabilities)
        softmax_backward(outer[0].contiguous(), probabilities, result, ctx.scaling, ctx.draw)
        return result, None, None, None


class AttentionFunction(torch.autograd.Function):
    """`apply(query [B, heads, Q, H], key, value [B, heads, K, H], mask, bias, scaling, draw)`: the context [B, heads,
    Q, H].

    Query, key and value share one dtype, bfloat16 or float32. `mask` and `bias` are float32 and broadcast to [B, heads,
    Q, K], or None; they are added to the scaled scores, and the bias has a gradient.
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
        draw: DropoutDraw,
    ) -> Tensor:
        batch, heads, rows, _ = query.shape
        # heads are strided views: a product with their transpose would copy them with a large stride
        query, key, value = (one.contiguous().flatten(0, 1) for one in (query, key, value))
        weights = torch.bmm(query, key.transpose(1, 2))
        shaped = weights.view(batch, heads, rows, -1)
        probabilities = torch.empty_like(shaped) if draw.dropped else shaped
        softmax(shaped, mask, bias, scaling, draw, probabilities, shaped)
        ctx.save_for_backward(query, key, value, probabilities, weights)
        ctx.scaling, ctx.draw, ctx.bias = scaling, draw, None if bias is None else bias.shape
        return torch.bmm(weights, value).view(batch, heads, rows, -1)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, probabilities, weights = ctx.saved_tensors
        (batch, heads), needs = outer[0].shape[:2], ctx.needs_input_grad
        gradient = outer[0].contiguous().flatten(0, 1)
        to_value = torch.bmm(weights.transpose(1, 2), gradient)
        score_gradient = torch.bmm(gradient, value.transpose(1, 2))
        softmax_backward(score_gradient, probabilities, score_gradient, ctx.scaling, ctx.draw)
        to_query, to_key = torch.bmm(score_gradient, key), torch.bmm(score_gradient.transpose(1, 2), query)
        to_bias: Tensor | None = None
        if needs[4]:
            to_bias = sum_to_shape(score_gradient.view(probabilities.shape), ctx.bias).div_(ctx.scaling)
        shaped = (one.view(batch, heads, *one.shape[1:]) for one in (to_query, to_key, to_value))
        return *shaped, None, to_bias, None, None


def softmax(
    scores: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    scaling: float,
    draw: DropoutDraw,
    probabilities: Tensor,
    result: Tensor,
) -> None:
    """Write into `chances` the softmax of `scores` [B, heads, Q, K] · `scaling` + `mask` + `bias`, and into `result`
    what dropout leaves of it: any of the three may be the same memory, these two where nothing is dropped."""
    *outer, width = scores.shape
    added = [None if one is None else one.expand(scores.shape) for one in (mask, bias)]
    strides = [stride for one in added for stride in ((0, 0, 0) if one is None else one.stride()[:3])]
    SOFTMAX(
        scores.data_ptr(), *(None if one is None else one.data_ptr() for one in added), (c_ssize_t * 3)(*outer),
        (c_ssize_t * 6)(*strides), probabilities.data_ptr(), result.data_ptr(), width, scaling, draw.seed, draw.dropped,
        draw.scale, torch.get_num_threads(), int(scores.dtype is torch.bfloat16),
    )  # fmt: skip


def softmax_backward(
    gradient: Tensor, probabilities: Tensor, result: Tensor, scaling: float, draw: DropoutDraw
) -> None:
    """Write the gradient of the unscaled scores into `result`, which may be `gradient` itself."""
    width = probabilities.shape[-1]
    SOFTMAX_BACKWARD(
        gradient.data_ptr(), probabilities.data_ptr(), result.data_ptr(), probabilities.numel() // width, width,
        scaling, draw.seed, draw.dropped, draw.scale, torch.get_num_threads(),
        int(probabilities.dtype is torch.bfloat16),
    )  # fmt: skip


def sum_to_shape(values: Tensor, shape: torch.Size) -> Tensor:
    """float32 of `shape`: `values` summed over the dimensions in which `shape` was broadcast."""
    shape = torch.Size((1,) * (values.dim() - len(shape)) + tuple(shape))
    dimensions = [at for at, size in enumerate(shape) if size == 1]
    return values.sum(dimensions, keepdim=True, dtype=torch.float32) if dimensions else values.float()


def prepare_mask(mask: Tensor, width: int) -> Tensor:
    """float32 [..., `width`] of a mask [..., `width` or 1], with contiguous rows as the kernel reads them."""
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
    """Attention function of transformers' interface: context [B, Q, heads, H], and the weights or None.

    `query` is [B, heads, Q, H], `key` and `value` are [B, heads, K, H]. `attention_mask` and `position_bias` are added
    to the scores; only the latter has a gradient. The weights are returned where a hook or `output_attentions` may need
    them.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    rate = dropout if module.training else 0.0
    # hooks on this module record the weights
    returns_weights = module._forward_hooks or others.get("output_attentions")
    if not returns_weights and rate < 1 and _all_readable(query, key, value):
        width = key.shape[2]
        mask, bias = (None if one is None else prepare_mask(one, width) for one in (attention_mask, position_bias))
        # torch does not type it
        context: Tensor = AttentionFunction.apply(  # type: ignore[no-untyped-call]
            query, key, value, mask, bias, scale, draw_dropout(rate)
        )
        return context.transpose(1, 2), None
    scores = torch.matmul(query, key.transpose(2, 3))
    if position_bias is not None:
        scores, scale = scores * scale + position_bias.to(scores.dtype), 1.0
    weights = masked_softmax(scores, attention_mask, scale, rate)
    return torch.matmul(weights, value).transpose(1, 2), weights


def _all_readable(*states: Tensor) -> bool:
    """Whether the kernels can read all `states`, and autocast would cast none."""
    kind = states[0].dtype
    changed = torch.is_autocast_enabled("cpu") and torch.get_autocast_dtype("cpu") is not kind
    return not changed and all(one.dtype is kind and is_readable(one) for one in states)
