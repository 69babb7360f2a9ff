"""Masked tokens predicted from the states of any backbone of one stack, as BERT's own head does from its own (Devlin et
al. 2018, §3.1)."""

from __future__ import annotations

from typing import cast

from torch import Tensor, nn
from torch.nn.functional import gelu
from transformers import PretrainedConfig

from pipelines.networks.backbone_with_head import BackboneWithHead, linear


class MaskedTokenPredictor(BackboneWithHead):
    """backbone → linear → GELU → normalisation → scores of the vocabulary, at the masked positions alone."""

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        self.transform = linear(config.hidden_size, config.hidden_size, config)
        self.transform_norm = nn.LayerNorm(config.hidden_size)
        self.scores = linear(config.hidden_size, config.vocab_size, config)

    def predict(self, states: Tensor) -> Tensor:
        """[M, V]: scores of the vocabulary from `states` [M, H]."""
        return cast("Tensor", self.scores(self.transform_norm(gelu(self.transform(states)))))

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **others: Tensor) -> Tensor:
        """Scores [B, L, V] of every position of the rows `input_ids` [B, L]; `others` are further arguments of the
        backbone."""
        inputs = {"input_ids": input_ids, **others}
        if attention_mask is not None:
            inputs["attention_mask"] = attention_mask
        return self.predict(self.run_backbone(inputs).last_hidden_state)
