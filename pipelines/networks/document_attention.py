"""Attention within documents only, over rows that hold several: one function for every body of transformers that asks for one.

The linear layers read the rows as they are, packed; no score between two documents is computed where it can be avoided:

    CUDA, half precision, no dropout   torch's varlen_attn over all documents end to end (FlashAttention 2: arXiv:2307.08691)
    CPU, documents short beside a row  documents of like length side by side, plain matrix products
    otherwise                          whole rows, with a mask of blocks

A body takes `documents=` beside its own arguments and hands it down; without it, each row is one document, and so is its padding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from pipelines.errors import RecipeError
from pipelines.networks.masked_softmax import masked_softmax

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAME = "within_documents"
"""In transformers' registry of attention functions."""
SHORTEST_CLASS = 16
"""Documents up to so many tokens are of one length class; each further class is twice as long."""
WORTH_GATHERING = 0.5
"""Share of a row's scores below which documents are gathered: to gather and to put back costs about as much as to score."""


class LengthClass(NamedTuple):
    """Documents of like length, side by side: D of them, the longest with T tokens."""

    places: Tensor
    """int64 [D · T]: the token of the batch that stands at each place; any token behind the end of a document."""
    hidden: Tensor
    """bool [D, T]: what stands behind the end of a document."""
    kept: Tensor
    """int64: the places that hold a token, ascending."""


class Documents(NamedTuple):
    """Where the documents of a batch stand."""

    numbers: Tensor
    """int64 [B, L]: the document of each token, ascending over the whole batch."""
    bounds: Tensor | None = None
    """int32 [D + 1]: where each document begins among the B · L tokens, and their number; further entries repeat that."""
    classes: tuple[LengthClass, ...] = ()
    """All documents by their length; none where whole rows are read."""
    order: Tensor | None = None
    """int64 [B · L]: where each token stands in the classes end to end."""


def attend_within_documents(network: PreTrainedModel) -> None:
    """Let `network` attend within documents only. Raises RecipeError for one that computes its scores by itself."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, _padding)
    if not network._can_set_attn_implementation():
        raise RecipeError(
            f"{network.config.model_type}: it computes its attention by itself and cannot be told to attend within documents; "
            "use another layout, or another body"
        )
    network.set_attn_implementation(NAME)


def documents_of(starts: Tensor) -> Documents:
    """The documents that begin where `starts` [B, L] is not 0; every row begins one.

    Waits for the device once, to count them.
    """
    begins = starts != 0
    begins[:, 0] = True
    flat = begins.flatten()
    numbers = (flat.cumsum(0) - 1).view_as(starts)
    places = flat.nonzero().squeeze(1)
    bounds = torch.cat([places, places.new_tensor([flat.numel()])])
    if bounds.is_cuda:
        return Documents(numbers, bounds.int())
    lengths = bounds.diff()
    kinds = torch.ceil(torch.log2(lengths.clamp(min=SHORTEST_CLASS).double())).long()
    chosen = [kinds == kind for kind in sorted(set(kinds.tolist()))]
    scores = sum(int(one.sum()) * int(lengths[one].max()) ** 2 for one in chosen)
    if scores > WORTH_GATHERING * flat.numel() * starts.shape[1]:
        return Documents(numbers, bounds.int())
    classes = tuple(_side_by_side(places[one], lengths[one]) for one in chosen)
    order = torch.argsort(torch.cat([one.places[one.kept] for one in classes]))
    return Documents(numbers, bounds.int(), classes, order)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    documents: Documents | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """[B, L, heads, H]: each token of `query`, `key` and `value` [B, heads, L, H] attends to those of its document.

    `attention_mask` [B, L] is 1 for a token, 0 for padding, and read only without `documents`. A module that says it is causal
    lets a token see only what precedes it. Raises ValueError for a body that adds a bias to its scores, or that remembers keys.
    """
    if others.get("position_bias") is not None:
        raise ValueError(f"{NAME}: a body with relative biases scores tokens by more than queries and keys")
    if query.shape[2] != key.shape[2]:
        raise ValueError(f"{NAME}: reads whole rows, and keys of an earlier row are remembered here")
    if documents is None:
        documents = documents_of(_rows(query, attention_mask))
    rate = dropout if module.training else 0.0
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    causal = bool(getattr(module, "is_causal", False))
    if query.is_cuda and rate == 0 and query.dtype in (torch.bfloat16, torch.float16) and documents.bounds is not None:
        return _end_to_end(query, key, value, documents.bounds, scale, causal), None
    if documents.order is not None:
        return _by_length(query, key, value, documents, scale, rate, causal), None
    return _by_row(query, key, value, documents.numbers, scale, rate, causal), None


def _end_to_end(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, scale: float, causal: bool) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    rows, heads, length, width = query.shape
    query, key, value = (one.transpose(1, 2).reshape(rows * length, heads, width) for one in (query, key, value))
    seen = (-1, 0) if causal else (-1, -1)
    said = varlen_attn(query, key, value, bounds, bounds, length, length, scale=scale, window_size=seen)
    assert isinstance(said, Tensor)
    return said.view(rows, length, heads, width)


def _by_row(
    query: Tensor, key: Tensor, value: Tensor, numbers: Tensor, scale: float, rate: float, causal: bool
) -> Tensor:
    hidden = numbers[:, None, :, None] != numbers[:, None, None, :]
    if causal:
        hidden = hidden | _later(query.shape[2], query.device)
    if query.is_cuda:
        said = scaled_dot_product_attention(query, key, value, ~hidden, dropout_p=rate, scale=scale)
        return said.transpose(1, 2)
    return _products(query, key, value, hidden, scale, rate).transpose(1, 2)


def _by_length(
    query: Tensor, key: Tensor, value: Tensor, documents: Documents, scale: float, rate: float, causal: bool
) -> Tensor:
    rows, heads, length, width = query.shape
    flat = [one.transpose(1, 2).reshape(rows * length, heads * width) for one in (query, key, value)]
    said = []
    for places, hidden, kept in documents.classes:
        count, longest = hidden.shape
        asks, answers, holds = (
            one.index_select(0, places).view(count, longest, heads, width).transpose(1, 2) for one in flat
        )
        behind = hidden[:, None, None, :]
        mask = behind | _later(longest, query.device) if causal else behind
        scored = _products(asks, answers, holds, mask, scale, rate)
        scored = scored.transpose(1, 2).reshape(count * longest, heads * width)
        said.append(scored.index_select(0, kept))
    assert documents.order is not None
    return torch.cat(said).index_select(0, documents.order).view(rows, length, heads, width)


def _products(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor, scale: float, rate: float) -> Tensor:
    """Plain matrix products, which on a CPU beat the fused kernel forward and far more so backward."""
    scores = torch.matmul(query, key.transpose(2, 3))
    mask = torch.zeros((), device=scores.device).masked_fill(hidden, torch.finfo(torch.float32).min)
    return torch.matmul(masked_softmax(scores, mask, scale, rate), value)


def _side_by_side(places: Tensor, lengths: Tensor) -> LengthClass:
    along = torch.arange(int(lengths.max()), device=lengths.device)
    hidden = along >= lengths[:, None]
    tokens = (places[:, None] + along).masked_fill(hidden, 0)
    return LengthClass(tokens.flatten(), hidden, (~hidden).flatten().nonzero().squeeze(1))


def _later(length: int, device: torch.device) -> Tensor:
    """bool [L, L]: what a token must not see of those behind it."""
    return torch.ones(length, length, dtype=torch.bool, device=device).triu(1)


def _rows(query: Tensor, attention_mask: Tensor | None) -> Tensor:
    """Starts of rows, and of the padding in them."""
    starts = torch.zeros(query.shape[0], query.shape[2], dtype=torch.long, device=query.device)
    if attention_mask is not None:
        starts[:, 1:] = (attention_mask[:, 1:] != attention_mask[:, :-1]).long()
    return starts


def _padding(*_: Any, attention_mask: Tensor | None = None, **others: Any) -> Tensor | None:
    """What transformers makes of a mask of padding for this function: nothing, `attend` reads it as it is."""
    return attention_mask
