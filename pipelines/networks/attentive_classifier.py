"""A classifier above a language model: an LSTM of its own, self-attention over its states, and the language model's
next tokens beside the classes (Chronopoulou et al. 2019, arXiv:1902.10547, §2).

    tokens ─▶ backbone ─▶ LSTM ─▶ h₁ … h_L ─▶ Σ aᵢ hᵢ ─▶ scores,   a = softmax(tanh(w · hᵢ + b))
                  └─────▶ logits of the next token

Shapes: B rows of L tokens, H the width of the backbone's states, A that of the LSTM, V the vocabulary, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from pipelines.errors import RecipeError
from pipelines.networks.backbone_with_head import BackboneWithHead, dropout_of, linear
from pipelines.networks.bilstm import run_packed


@dataclass
class AttentiveOutput(ModelOutput):
    """Outputs of the classifier."""

    logits: Tensor | None = None
    """[B, C]: scores."""
    weights: Tensor | None = None
    """[B, L]: how much each token counts; 0 at padding."""
    last_hidden_state: Tensor | None = None
    """[B, L, H]: top states of the backbone."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [B, L, H], embeddings first."""


class AttentiveClassifier(BackboneWithHead):
    """backbone → LSTM → self-attention → dropout → linear.

    Configuration keys: `id2label` (C), and `attentive_size` (A; 0: attention over the backbone's own states).
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        width = config.attentive_size or config.hidden_size
        self.lstm = nn.LSTM(config.hidden_size, width, batch_first=True) if config.attentive_size else None
        self.attention = linear(width, 1, config)
        self.dropout = nn.Dropout(dropout_of(config))
        self.classifier = linear(width, len(config.id2label or {}), config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> AttentiveOutput:
        """Scores of the rows `input_ids` [B, L]; `others` are further arguments of the backbone."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        outputs = self.run_backbone({"input_ids": input_ids, "attention_mask": mask, **others}, output_hidden_states)
        states: Tensor = outputs.last_hidden_state
        if self.lstm is not None:
            # padding stands on the right, or nowhere: what is before it is not affected
            with torch.autocast(states.device.type, enabled=False):
                states = run_packed(self.lstm, states, mask.sum(1))
        energies = torch.tanh(self.attention(states)).squeeze(-1).float()
        weights = energies.masked_fill(mask == 0, float("-inf")).softmax(-1)
        pooled = (weights.unsqueeze(1).to(states.dtype) @ states).squeeze(1)
        return AttentiveOutput(
            self.classifier(self.dropout(pooled)), weights, outputs.last_hidden_state, outputs.hidden_states
        )

    def next_logits(self, top: Tensor) -> Tensor:
        """[B, L, V]: scores of the next token of `top` [B, L, H], by the input embeddings of the backbone.

        Raises RecipeError for a backbone whose language model does not score with its embeddings.
        """
        if not self.config.tie_word_embeddings:
            raise RecipeError(
                f"head: a language model beside the classes scores with the embeddings, and those of this "
                f"{self.config.model_type} are not tied to its output; use a backbone that ties them, such as awd_lstm"
            )
        table = cast("nn.Embedding", self.base_model.get_input_embeddings())  # type: ignore[operator]
        scores: Tensor = top @ table.weight.T
        return scores
