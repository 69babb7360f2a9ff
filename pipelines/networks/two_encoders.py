"""Two encoders of one architecture, of which one reads a sentence and the other its neighbours (Logeswaran & Lee 2018,
arXiv:1803.02893, §3)."""

from __future__ import annotations

import torch
from torch import Tensor
from transformers import PretrainedConfig

from pipelines.networks.backbone_with_head import BackboneWithHead
from pipelines.networks.siamese import pool_text


class TwoEncoders(BackboneWithHead):
    """The backbone, and a second one with weights of its own; each gives a row one vector.

    Configuration key: `encoders_pooling` (`siamese.pool_text`).
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.second = BackboneWithHead(config)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, second: bool = False) -> Tensor:
        """[B, H]: the vector of each of the rows `input_ids` [B, L], by the backbone or by the `second` encoder."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        encoder = self.second if second else self
        states = encoder.run_backbone({"input_ids": input_ids, "attention_mask": mask}).last_hidden_state
        return pool_text(states, mask, self.config.encoders_pooling)
