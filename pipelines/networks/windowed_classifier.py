"""Classifiers of texts that are longer than a row: a vector of each window, combined to one of the text.

    windows ─▶ backbone ─▶ pooling ─▶ v₁ … v_K ─▶ mean, maximum, or the last state of an LSTM ─▶ scores

Shapes: B texts of up to K windows of L tokens, H the width of the backbone's states, A that of the LSTM, C classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers.utils.generic import ModelOutput

from pipelines.networks.backbone_with_head import BackboneWithHead, dropout_of, linear
from pipelines.networks.bilstm import run_packed
from pipelines.networks.sequence_classifier import pool

READER = "lstm"
"""The combination that reads the windows in their order (Pappagari et al. 2019, RoBERT §3.1)."""


@dataclass
class WindowedOutput(ModelOutput):
    """Outputs of the classifier."""

    logits: Tensor | None = None
    """[B, C]: scores."""
    last_hidden_state: Tensor | None = None
    """[B · K, L, H]: top states of the windows, those of a text adjacent."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [B · K, L, H], embeddings first."""


class WindowedClassifier(BackboneWithHead):
    """backbone → pooling within windows → combination of windows → dropout → linear.

    Configuration keys: `id2label` (C), `windows_pooling`, `windows_combined`, and `windows_reader` (A) of an LSTM.
    """

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        width = config.hidden_size
        self.reader: nn.LSTM | None = None
        if config.windows_combined == READER:
            self.reader = nn.LSTM(width, config.windows_reader, batch_first=True)
            width = config.windows_reader
        self.dropout = nn.Dropout(dropout_of(config))
        self.classifier = linear(width, len(config.id2label or {}), config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor,
        windows: Tensor,
        output_hidden_states: bool = False,
        **others: Tensor,
    ) -> WindowedOutput:
        """Scores of texts whose rows `input_ids` [B · K, L] are windows where `windows` [B, K] is 1, those first;
        `others` are further arguments of the backbone."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask, **others}
        outputs = self.run_backbone(inputs, output_hidden_states)
        states: Tensor = outputs.last_hidden_state
        vectors = pool(states, attention_mask, self.config.windows_pooling).view(*windows.shape, -1)
        logits = self.classifier(self.dropout(self._combined(vectors, windows)))
        return WindowedOutput(logits, states, outputs.hidden_states)

    def _combined(self, vectors: Tensor, windows: Tensor) -> Tensor:
        """[B, H], or [B, A] of an LSTM: the vectors [B, K, H] of the windows that exist."""
        if self.reader is not None:
            with torch.autocast(vectors.device.type, enabled=False):
                read = run_packed(self.reader, vectors.float(), windows.sum(1))
            return pool(read, windows, "last")
        if self.config.windows_combined == "max":
            return vectors.masked_fill(windows.unsqueeze(-1) == 0, float("-inf")).amax(1)
        return pool(vectors, windows, "mean")
