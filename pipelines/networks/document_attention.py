"""Attention within documents, over rows that hold several: one attention function for all backbones of transformers
that support registered ones.

Linear layers run on the packed rows; scores between different documents are computed only where that cannot be avoided:

    CUDA, half precision, no dropout    torch's varlen_attn over all documents (FlashAttention 2: arXiv:2307.08691)
    CPU, documents shorter than rows    documents gathered by length, plain matrix products
    otherwise                           whole rows, with a block-diagonal mask

Pass `documents=` to the backbone in addition to its own arguments; without it, each row is one document and its padding
another.
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
"""Name in transformers' registry of attention functions."""
SHORTEST_CLASS = 16
"""Longest documents of the first length class, in tokens; each further class is twice as long."""
WORTH_GATHERING = 0.5
"""Share of the scores of whole rows below which documents are gathered: gathering and scattering costs about as much as
computing the other half."""


class LengthClass(NamedTuple):
    """A padded batch of D documents of similar length, the longest with T tokens."""

    token_indices: Tensor
    """int64 [D · T]: index among the B · L tokens of the token at each slot; an arbitrary one for padding."""
    padding: Tensor
    """bool [D, T]: slots after the end of a document."""
    occupied: Tensor
    """int64: ascending indices of the slots that hold a token."""


class Documents(NamedTuple):
    """The documents of a batch: ids of tokens, and how to gather them."""

    ids: Tensor
    """int64 [B, L]: the document of each token, ascending over the whole batch."""
    bounds: Tensor | None = None
    """int32 [D + 1]: index of each document's first token among the B · L tokens, then B · L; further entries repeat
    that."""
    classes: tuple[LengthClass, ...] = ()
    """All documents by length; empty where whole rows are computed."""
    order: Tensor | None = None
    """int64 [B · L]: index of each token in the concatenated classes."""


class Reach(NamedTuple):
    """Which tokens of its document a token attends to, by their distance."""

    causal: bool
    """Not to later ones."""
    window: int | None
    """Only to those that are fewer than so many tokens away; None: to all."""

    def beyond(self, length: int, device: torch.device) -> Tensor | None:
        """bool [L, L]: True where token j is hidden from token i; None where none is."""
        if not self.causal and (self.window is None or self.window >= length):
            return None
        every = torch.ones(length, length, dtype=torch.bool, device=device)
        hidden = every.triu(1) if self.causal else ~every
        return hidden if self.window is None else hidden | every.triu(self.window) | every.tril(-self.window)


def attend_within_documents(network: PreTrainedModel) -> None:
    """Restrict the attention of `network` to documents. Raises RecipeError if it does not use registered attention
    functions."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, _padding)
    if not network._can_set_attn_implementation():
        raise RecipeError(
            f"{network.config.model_type}: its attention cannot be restricted to documents, since it does not use "
            "registered attention functions; use another layout or another backbone"
        )
    network.set_attn_implementation(NAME)


def documents_of(starts: Tensor) -> Documents:
    """The documents that begin where `starts` [B, L] is not 0; every row begins one.

    Synchronises with the device once, to count them.
    """
    begins = starts != 0
    begins[:, 0] = True
    flat = begins.flatten()
    ids = (flat.cumsum(0) - 1).view_as(starts)
    first_tokens = flat.nonzero().squeeze(1)
    bounds = torch.cat([first_tokens, first_tokens.new_tensor([flat.numel()])])
    if bounds.is_cuda:
        return Documents(ids, bounds.int())
    lengths = bounds.diff()
    length_classes = torch.ceil(torch.log2(lengths.clamp(min=SHORTEST_CLASS).double())).long()
    chosen = [length_classes == one for one in sorted(set(length_classes.tolist()))]
    scores = sum(int(one.sum()) * int(lengths[one].max()) ** 2 for one in chosen)
    if scores > WORTH_GATHERING * flat.numel() * starts.shape[1]:
        return Documents(ids, bounds.int())
    classes = tuple(_gathered(first_tokens[one], lengths[one]) for one in chosen)
    order = torch.argsort(torch.cat([one.token_indices[one.occupied] for one in classes]))
    return Documents(ids, bounds.int(), classes, order)


def attend(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    documents: Documents | None = None,
    sliding_window: int | None = None,
    **others: Any,
) -> tuple[Tensor, None]:
    """[B, L, heads, H]: each token of `query`, `key` and `value` [B, heads, L, H] attends to those of its document.

    `attention_mask` [B, L] is 1 for a token, 0 for padding, and read only without `documents`; one of four dimensions
    (`networks/visibility.py`) is added to the scores and says all there is to say. In a module with
    `is_causal` a token attends only to itself and earlier tokens; with a `sliding_window`, only to tokens that are
    fewer than so many away, as transformers counts. Raises ValueError for a backbone with a bias on scores or cached
    keys.
    """
    if others.get("position_bias") is not None:
        raise ValueError(f"{NAME}: a position bias on attention scores is not supported")
    if query.shape[2] != key.shape[2]:
        raise ValueError(f"{NAME}: cached keys of earlier rows are not supported")
    rate = dropout if module.training else 0.0
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if attention_mask is not None and attention_mask.dim() == 4:
        if sliding_window is not None:
            raise ValueError(f"{NAME}: an attention pattern is not supported in layers with a window")
        scores = torch.matmul(query, key.transpose(2, 3))
        return torch.matmul(masked_softmax(scores, attention_mask, scale, rate), value).transpose(1, 2), None
    if documents is None:
        documents = documents_of(_row_starts(query, attention_mask))
    reach = Reach(bool(getattr(module, "is_causal", False)), sliding_window)
    if query.is_cuda and rate == 0 and query.dtype in (torch.bfloat16, torch.float16) and documents.bounds is not None:
        return _concatenated(query, key, value, documents.bounds, scale, reach), None
    if documents.order is not None:
        return _by_length(query, key, value, documents, scale, rate, reach), None
    return _by_row(query, key, value, documents.ids, scale, rate, reach), None


def _concatenated(query: Tensor, key: Tensor, value: Tensor, bounds: Tensor, scale: float, reach: Reach) -> Tensor:
    from torch.nn.attention.varlen import varlen_attn

    rows, heads, length, width = query.shape
    query, key, value = (one.transpose(1, 2).reshape(rows * length, heads, width) for one in (query, key, value))
    away = -1 if reach.window is None else reach.window - 1
    sides = (away, 0 if reach.causal else away)
    attended = varlen_attn(query, key, value, bounds, bounds, length, length, scale=scale, window_size=sides)
    assert isinstance(attended, Tensor)
    return attended.view(rows, length, heads, width)


def _by_row(query: Tensor, key: Tensor, value: Tensor, ids: Tensor, scale: float, rate: float, reach: Reach) -> Tensor:
    hidden = ids[:, None, :, None] != ids[:, None, None, :]
    if (beyond := reach.beyond(query.shape[2], query.device)) is not None:
        hidden = hidden | beyond
    if query.is_cuda:
        attended = scaled_dot_product_attention(query, key, value, ~hidden, dropout_p=rate, scale=scale)
        return attended.transpose(1, 2)
    return _products(query, key, value, hidden, scale, rate).transpose(1, 2)


def _by_length(
    query: Tensor, key: Tensor, value: Tensor, documents: Documents, scale: float, rate: float, reach: Reach
) -> Tensor:
    rows, heads, length, width = query.shape
    flat = [one.transpose(1, 2).reshape(rows * length, heads * width) for one in (query, key, value)]
    outputs = []
    for token_indices, padding, occupied in documents.classes:
        count, longest = padding.shape
        queries, keys, values = (
            one.index_select(0, token_indices).view(count, longest, heads, width).transpose(1, 2) for one in flat
        )
        hidden = padding[:, None, None, :]
        beyond = reach.beyond(longest, query.device)
        mask = hidden if beyond is None else hidden | beyond
        attended = _products(queries, keys, values, mask, scale, rate)
        attended = attended.transpose(1, 2).reshape(count * longest, heads * width)
        outputs.append(attended.index_select(0, occupied))
    assert documents.order is not None
    return torch.cat(outputs).index_select(0, documents.order).view(rows, length, heads, width)


def _products(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor, scale: float, rate: float) -> Tensor:
    """Attention by plain matrix products, on a CPU faster than the fused kernel in forward and much more so in
    backward."""
    scores = torch.matmul(query, key.transpose(2, 3))
    mask = torch.zeros((), device=scores.device).masked_fill(hidden, torch.finfo(torch.float32).min)
    return torch.matmul(masked_softmax(scores, mask, scale, rate), value)


def _gathered(first_tokens: Tensor, lengths: Tensor) -> LengthClass:
    offsets = torch.arange(int(lengths.max()), device=lengths.device)
    padding = offsets >= lengths[:, None]
    token_indices = (first_tokens[:, None] + offsets).masked_fill(padding, 0)
    return LengthClass(token_indices.flatten(), padding, (~padding).flatten().nonzero().squeeze(1))


def _row_starts(query: Tensor, attention_mask: Tensor | None) -> Tensor:
    """int64 [B, L]: 1 where the padding of a row begins, for rows that are one document each."""
    starts = torch.zeros(query.shape[0], query.shape[2], dtype=torch.long, device=query.device)
    if attention_mask is not None:
        starts[:, 1:] = (attention_mask[:, 1:] != attention_mask[:, :-1]).long()
    return starts


def _padding(*_: Any, attention_mask: Tensor | None = None, **others: Any) -> Tensor | None:
    """Mask function for transformers: pass the padding mask on unchanged, `attend` reads it as it is."""
    return attention_mask
