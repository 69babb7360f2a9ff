"""The biattentive classification network: two texts, each read again with what the other says of its words (McCann et
al. 2017, arXiv:1708.00107, §5).

    states X of one text, Y of the other: backbone, ReLU, biLSTM
    X′ = softmax(X Yᵀ) Y                  what the other says of each word
    [X, X − X′, X · X′]                   biLSTM, poolings; the same of Y
    both texts side by side               maxout, scores

A single text is its own other one. Pooling is maximum, mean, minimum and self-attention side by side. Unlike the
paper's, the maxout layer is one, and no batch is normalised: an example's scores depend on no other example.

Shapes: B examples in R rows, two for each pair and adjacent, of L tokens; H the width of the backbone's states, A that
of the LSTMs, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from pipelines.networks.backbone_with_head import BackboneWithHead, linear
from pipelines.networks.bilstm import run_packed

PIECES = 4
"""Number of linear pieces of a maxout unit, and of the poolings."""


@dataclass
class BiattentiveOutput(ModelOutput):
    """Outputs of the classifier."""

    logits: Tensor | None = None
    """[B, C]: scores."""
    last_hidden_state: Tensor | None = None
    """[R, L, H]."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [R, L, H], embeddings first."""


class BiattentiveClassifier(BackboneWithHead):
    """backbone → biLSTM → biattention → biLSTM → poolings → maxout → linear.

    Configuration keys: `id2label` (C), `biattentive_size` (A), `biattentive_dropout` (of what each layer reads) and
    `biattentive_texts` (1 or 2 texts in an example).
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        size: int = config.biattentive_size
        self.dropout = nn.Dropout(config.biattentive_dropout)
        self.projection = nn.Linear(config.hidden_size, size)
        self.encoder = nn.LSTM(size, size // 2, batch_first=True, bidirectional=True)
        self.integrator = nn.LSTM(3 * size, size // 2, batch_first=True, bidirectional=True)
        self.attention = linear(size, 1, config)
        self.maxout = nn.Linear(PIECES * size * config.biattentive_texts, PIECES * size)
        self.classifier = linear(size, len(config.id2label or {}), config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> BiattentiveOutput:
        """Scores of the rows `input_ids` [R, L]; `others` are further arguments of the backbone."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        outputs = self.run_backbone({"input_ids": input_ids, "attention_mask": mask, **others}, output_hidden_states)
        states = self._encode(self.encoder, self.projection(self.dropout(outputs.last_hidden_state)).relu(), mask)
        other, other_mask = (states, mask) if self.config.biattentive_texts == 1 else (swap(states), swap(mask))
        summary = attend(states, other, other_mask)
        states = self._encode(self.integrator, torch.cat([states, states - summary, states * summary], dim=-1), mask)
        pooled = self.dropout(self._pool(states, mask).reshape(-1, self.maxout.in_features))
        units = self.maxout(pooled).unflatten(-1, (-1, PIECES)).amax(-1)
        logits = self.classifier(self.dropout(units))
        return BiattentiveOutput(logits, outputs.last_hidden_state, outputs.hidden_states)

    def _encode(self, layer: nn.LSTM, states: Tensor, mask: Tensor) -> Tensor:
        # padding stands on the right, or nowhere; half precision gains nothing at this width
        with torch.autocast(states.device.type, enabled=False):
            return run_packed(layer, self.dropout(states), mask.sum(1))

    def _pool(self, states: Tensor, mask: Tensor) -> Tensor:
        """[R, 4 A]: maximum, mean, minimum and self-attention of `states` [R, L, A] where `mask` [R, L] is 1."""
        gap = (mask == 0).unsqueeze(-1)
        weights = self.attention(states).masked_fill(gap, float("-inf")).softmax(1)
        mean = states.masked_fill(gap, 0).sum(1) / mask.sum(1, keepdim=True).clamp(min=1)
        highest, lowest = (states.masked_fill(gap, sign * float("inf")) for sign in (-1, 1))
        return torch.cat([highest.amax(1), mean, lowest.amin(1), (weights * states).sum(1)], dim=-1)


def swap(rows: Tensor) -> Tensor:
    """`rows` [2 B, …] with the two of each pair exchanged."""
    return rows.view(-1, 2, *rows.shape[1:]).flip(1).flatten(0, 1)


def attend(states: Tensor, others: Tensor, mask: Tensor) -> Tensor:
    """[R, L, A]: for each of `states` [R, L, A] the mean of `others` [R, L, A] where `mask` [R, L] is 1, weighted by
    the softmax of their products with it."""
    weights = (states @ others.transpose(1, 2)).masked_fill(mask[:, None] == 0, float("-inf")).softmax(-1)
    return weights @ others
