"""The network for tagging: a backbone and scores of every tag at every token, with or without tag transitions."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from pipelines.networks.backbone_with_head import BackboneWithHead, dropout_of, linear


@dataclass
class TaggingOutput(ModelOutput):
    """Outputs of a token classifier."""

    logits: Tensor | None = None
    """[B, L, C]: scores of tags."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [B, L, H], embeddings first."""


class TokenClassifier(BackboneWithHead):
    """backbone → dropout → linear. With `config.tag_transitions` it also has a table of transition scores."""

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        tags = len(config.id2label or {})
        self.dropout = nn.Dropout(dropout_of(config))
        self.classifier = linear(config.hidden_size, tags, config)
        if config.tag_transitions:
            self.transitions = nn.Parameter(torch.empty(tags + 2, tags + 2).uniform_(-0.1, 0.1))

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> TaggingOutput:
        """Scores of the rows `input_ids` [B, L]; `others` are further arguments of the backbone."""
        inputs = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        outputs = self.run_backbone(inputs, output_hidden_states)
        return TaggingOutput(self.classifier(self.dropout(outputs.last_hidden_state)), outputs.hidden_states)
