"""The network of two texts that one encoder reads apart: their vectors meet above it (Conneau et al. 2017, §3.1).

    a ─▶ encoder ─▶ pooling ─▶ u ─┐
    b ─▶ encoder ─▶ pooling ─▶ v ─┴▶ [u, v, |u − v|, u · v] ─▶ scores

Shapes: B examples in R rows, two for each pair and adjacent, of L tokens; H the width of the encoder's states.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from pipelines.networks.backbone_with_head import BackboneWithHead, dropout_of, linear
from pipelines.networks.sequence_classifier import pool

COMPARED = 4
"""Number of vectors of width H that a pair is scored from."""


@dataclass
class SiameseOutput(ModelOutput):
    """Outputs of a siamese network."""

    logits: Tensor | None = None
    """[B, C]: scores."""
    vectors: Tensor | None = None
    """[R, H]: the vector of each text."""
    last_hidden_state: Tensor | None = None
    """[R, L, H]."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [R, L, H], embeddings first."""


class SiameseNetwork(BackboneWithHead):
    """Scores of single texts from their vectors, or of pairs from what two vectors have in common.

    Configuration keys: `id2label` (C), `siamese_pooling` (`max`, or one of `sequence_classifier.pool`), `siamese_texts`
    (1 or 2 texts in an example) and `siamese_hidden` (width of a tanh layer below the scores; None: none).
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        width = config.hidden_size * (COMPARED if config.siamese_texts == 2 else 1)
        self.dropout = nn.Dropout(dropout_of(config))
        self.hidden: nn.Module = nn.Identity()
        if config.siamese_hidden is not None:
            self.hidden = nn.Sequential(
                linear(width, config.siamese_hidden, config), nn.Tanh(), nn.Dropout(dropout_of(config))
            )
            width = config.siamese_hidden
        self.classifier = linear(width, len(config.id2label or {}), config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> SiameseOutput:
        """Scores of the rows `input_ids` [R, L]; `others` are further arguments of the backbone."""
        inputs = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        outputs = self.run_backbone(inputs, output_hidden_states)
        vectors = pool_text(outputs.last_hidden_state, attention_mask, self.config.siamese_pooling)
        features = compare(vectors) if self.config.siamese_texts == 2 else vectors
        return SiameseOutput(
            self.classifier(self.hidden(self.dropout(features))),
            vectors,
            outputs.last_hidden_state,
            outputs.hidden_states,
        )


def pool_text(states: Tensor, mask: Tensor | None, pooling: str) -> Tensor:
    """[R, H]: the maximum of `states` [R, L, H] over the tokens where `mask` [R, L] is 1, or another `pooling`."""
    if pooling != "max":
        return pool(states, mask, pooling)
    if mask is not None:
        states = states.masked_fill(mask.unsqueeze(-1) == 0, float("-inf"))
    return states.amax(1)


def compare(vectors: Tensor) -> Tensor:
    """[B, 4H]: u, v, |u − v| and u · v of adjacent `vectors` [2B, H]."""
    u, v = vectors.view(-1, 2, vectors.shape[-1]).unbind(1)
    return torch.cat([u, v, (u - v).abs(), u * v], dim=-1)
