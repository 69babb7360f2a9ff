"""The network behind `sequence_classification`: a Hugging Face model whose body is whatever its configuration says.

A saved folder's body carries the architecture's own weight names, so `AutoModel.from_pretrained(folder)` opens it in
plain transformers; the whole classifier opens with `SequenceClassifier.open(folder)`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Self

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput


@dataclass
class Classified(ModelOutput):
    """Scores, and what they were read from."""

    logits: Tensor | None = None
    """[B, C]."""
    pooled: Tensor | None = None
    """[B, H]."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [B, L, H], embeddings first."""


class SequenceClassifier(PreTrainedModel):
    """body → pooling (`config.classifier_pooling`) → dropout → linear."""

    config_class = PretrainedConfig
    supports_gradient_checkpointing = False
    _supports_sdpa = True
    _supports_attention_backend = True

    def __init__(self, config: PretrainedConfig) -> None:
        super().__init__(config)
        body = AutoModel.from_config(config)
        if getattr(body, "pooler", None) is not None:
            body.pooler = None  # trained on nothing we use; kept, it would be a weight that never learns
        # under the architecture's own name, so that the body's weights are found by plain transformers
        self.base_model_prefix = body.base_model_prefix
        setattr(self, self.base_model_prefix, body)
        self.dropout = nn.Dropout(getattr(config, "hidden_dropout_prob", 0.1))
        classes = len(config.id2label or {})
        self.classifier = nn.Linear(config.hidden_size, classes)
        nn.init.normal_(self.classifier.weight, std=getattr(config, "initializer_range", 0.02))
        nn.init.zeros_(self.classifier.bias)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The classifier saved in `folder`, float32, in eval mode. Safetensors only.

        Raises RuntimeError when the weights are not exactly the network's.
        """
        config = AutoConfig.from_pretrained(folder)
        config._attn_implementation = "eager"
        network = cls(config)
        network.load_state_dict(load_file(folder / "model.safetensors"))
        network.eval()  # type: ignore[no-untyped-call]  # transformers does not type it
        return network

    def forward(self, input_ids: Tensor, attention_mask: Tensor, output_hidden_states: bool = False) -> Classified:
        said = self.base_model(
            input_ids=input_ids, attention_mask=attention_mask, output_hidden_states=output_hidden_states
        )
        top = said.last_hidden_state
        if self.config.classifier_pooling == "cls":
            pooled = top[:, 0]
        else:
            weights = attention_mask.unsqueeze(-1).to(top.dtype)
            pooled = (top * weights).sum(1) / weights.sum(1)
        logits = self.classifier(self.dropout(pooled))
        return Classified(logits=logits, pooled=pooled, hidden_states=said.hidden_states)

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Nothing: the body initialises itself as its architecture does, the linear layer in `__init__`."""
