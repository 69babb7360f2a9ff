"""Sub-layers of BERT whose keys and values may be other vectors than its queries (Devlin et al. 2018, §3; Peters et al.
2019, KnowBert §3.3: between mention spans, and from words to spans)."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention


class CrossAttention(nn.Module):
    """Multi-head attention with its residual and its normalisation.

    Args:
        width: E, a multiple of `heads`.
        heads: number of attention heads.
        dropout: rate after the attention.
        attention_dropout: rate of the attention's probabilities.
    """

    def __init__(self, width: int, heads: int, dropout: float, attention_dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.attended = nn.Linear(width, width)
        self.attention_norm = nn.LayerNorm(width, eps=1e-12)
        self.dropout, self.attention_dropout = nn.Dropout(dropout), nn.Dropout(attention_dropout)

    def forward(self, states: Tensor, others: Tensor, exists: Tensor) -> Tensor:
        """[B, N, E]: `states` [B, N, E] after attending to those of `others` [B, G, E] for which `exists` bool [B, G];
        of a row without any, after attending to the first."""
        exists = exists.clone()
        exists[:, 0] |= ~exists.any(1)
        query, key, value = (
            project(given).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for project, given in ((self.query, states), (self.key, others), (self.value, others))
        )
        rate = self.attention_dropout.p if self.training else 0.0
        context = scaled_dot_product_attention(query, key, value, exists[:, None, None], dropout_p=rate)
        context = self.attended(context.transpose(1, 2).flatten(-2))
        return cast("Tensor", self.attention_norm(states + self.dropout(context)))


class SpanAttention(CrossAttention):
    """A layer: attention, and a feed-forward sub-layer of the width `inner` inside, with a residual and a
    normalisation."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float, attention_dropout: float) -> None:
        super().__init__(width, heads, dropout, attention_dropout)
        self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)

    def forward(self, states: Tensor, others: Tensor, exists: Tensor) -> Tensor:
        """[B, N, E], as the attention."""
        middle = super().forward(states, others, exists)
        return cast("Tensor", self.norm(middle + self.dropout(self.outer(gelu(self.inner(middle))))))
