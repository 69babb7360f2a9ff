"""How far the hidden states of layers are apart, in the ways that distillation compares them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

OVER = {
    "mean_square": "tokens",
    "cosine_distance": "tokens",
    "first_states": "rows",
    "token_relations": "pairs",
    "layer_flow": "rows",
}
"""Difference → what it is a mean over."""
BY_LAYERS = ("token_relations", "layer_flow")
"""Differences of products of the states of two layers."""


def difference(name: str, student: Sequence[Tensor], teacher: Sequence[Tensor], mask: Tensor) -> Tensor:
    """The difference `name` of states [B, L, H] of one layer each, or of two; `mask` int64 [B, L] is 0 at padding.

    `token_relations` needs no common width: the products of two tokens' states are divided by it.
    """
    import torch
    from torch.nn.functional import cosine_similarity, normalize

    real = mask.unsqueeze(-1).to(student[0].dtype)
    if name == "mean_square":
        return ((student[0] - teacher[0]).square() * real).sum() / (mask.sum() * student[0].shape[-1])
    if name == "cosine_distance":
        return ((1 - cosine_similarity(student[0], teacher[0], dim=-1)) * mask).sum() / mask.sum()
    if name == "first_states":
        own, other = (normalize(one[:, 0], dim=-1) for one in (student[0], teacher[0]))
        return (own - other).square().mean()
    if name == "token_relations":
        own, other = (
            torch.einsum("blh,bmh->blm", lower, upper) / lower.shape[-1] for lower, upper in (student, teacher)
        )
        pairs = real @ real.transpose(1, 2)
        return ((own - other).square() * pairs).sum() / pairs.sum()
    assert name == "layer_flow", name
    length = mask.sum(1).clamp_min(1).view(-1, 1, 1)
    own, other = (
        torch.einsum("blh,blg->bhg", lower * real, upper * real) / length for lower, upper in (student, teacher)
    )
    return (own - other).square().mean()
