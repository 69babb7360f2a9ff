"""The network of the head `span_boundary`: predicts the tokens of a masked span from the two tokens around it (Joshi et
al. 2019, §3.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig


class SpanBoundaryPredictor(nn.Module):
    """y = LayerNorm(GeLU(W₂ LayerNorm(GeLU(W₁ [x before; x after; p of the offset])))), scored against the
    embeddings."""

    def __init__(self, config: PretrainedConfig, width: int, positions: int, position_size: int) -> None:
        """`config` is that of the backbone, `width` the size of its token embeddings."""
        super().__init__()
        # as BERT's where a configuration calls it otherwise
        hidden, eps = config.hidden_size, getattr(config, "layer_norm_eps", 1e-12)
        self.position_embeddings = nn.Embedding(positions, position_size)
        self.first = nn.Linear(2 * hidden + position_size, hidden)
        self.first_norm = nn.LayerNorm(hidden, eps=eps)
        self.second = nn.Linear(hidden, width)
        self.second_norm = nn.LayerNorm(width, eps=eps)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        for layer in (self.position_embeddings, self.first, self.second):
            nn.init.normal_(layer.weight, std=config.initializer_range)
        for linear in (self.first, self.second):
            nn.init.zeros_(linear.bias)

    def forward(self, top: Tensor, edges: Tensor, offsets: Tensor, embeddings: Tensor) -> Tensor:
        """[M, V] from hidden states [B, L, H], flattened `edges` [M, 2], `offsets` in the span [M] and `embeddings` [V,
        width]."""
        around = top.flatten(0, 1)[edges].flatten(1)
        position = self.position_embeddings(offsets.clamp(max=self.position_embeddings.num_embeddings - 1))
        inner = self.first_norm(nn.functional.gelu(self.first(torch.cat([around, position.to(around.dtype)], dim=-1))))
        outer = self.second_norm(nn.functional.gelu(self.second(inner)))
        return nn.functional.linear(outer, embeddings, self.bias)
