"""TagLM: a tagger of BiLSTM layers that takes the states of language models above its first layer (Peters et al. 2017,
arXiv:1705.00108, §2.3 and §2.4, eq. 3).

    words ─▶ embeddings ─▶ BiLSTM ─▶ h₁ ─┐
    words ─▶ language models, frozen ────┴▶ [h₁, LM] ─▶ BiLSTM ─▶ … ─▶ h

Shapes: B rows of L tokens, H the width of a layer, F that of all language models together.
"""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from transformers import AutoModel
from transformers.modeling_outputs import BaseModelOutput

from pipelines.networks.attention_free import register_architecture
from pipelines.networks.bilstm import BilstmConfig, BilstmPreTrainedModel, row_lengths, run_packed
from pipelines.networks.features import FeatureReader


class TaglmConfig(BilstmConfig):
    """Dimensions of the tagger, and the networks that it reads."""

    model_type = "taglm"

    num_hidden_layers: int = 2
    inner_dropout: float = 0.25
    """Share of the elements dropped of the outputs of every layer but the top."""


class TaglmModel(BilstmPreTrainedModel):
    """The backbone. Padding on the right affects no other token. Without features it is a plain stack of BiLSTMs."""

    config_class = TaglmConfig
    base_model_prefix = "taglm"

    def __init__(self, config: TaglmConfig) -> None:
        super().__init__(config)
        self.features = nn.ModuleList(FeatureReader(settings) for settings in config.features or ())
        self.embeddings = nn.Embedding(config.vocab_size, config.embedding_size)
        above = config.hidden_size + sum(reader.width for reader in self.readers)
        widths = [config.embedding_size, above, *[config.hidden_size] * (config.num_hidden_layers - 2)]
        self.input_dropout, self.inner_dropout = nn.Dropout(config.input_dropout), nn.Dropout(config.inner_dropout)
        self.layers = nn.ModuleList(
            nn.LSTM(below, config.hidden_size // 2, batch_first=True, bidirectional=True) for below in widths
        )
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        feature_ids: Tensor | None = None,
        feature_mask: Tensor | None = None,
        feature_words: Tensor | None = None,
        feature_states: tuple[tuple[Tensor, ...] | None, ...] | None = None,
        output_hidden_states: bool = False,
    ) -> BaseModelOutput:
        """Run on `input_ids` [B, L]; the arguments after the mask are the fields of a batch with their names.

        The states of a layer [B, L, H] are both directions side by side, 0 at padding; the first of `hidden_states` are
        the embeddings. What the second layer reads, [B, L, H + F], is none of them.
        """
        lengths = row_lengths(input_ids, attention_mask)
        hidden_states: list[Tensor] = [self.embeddings(input_ids)]
        states = self.input_dropout(hidden_states[0])
        # half precision gains nothing at this width, and a packed LSTM has no such kernel on every device
        with torch.autocast(states.device.type, enabled=False):
            for number, layer in enumerate(self.layers):
                if number:
                    states = self.inner_dropout(states)
                if number == 1:
                    read = self.read_features(feature_ids, feature_mask, feature_words, feature_states)
                    states = torch.cat([states, *(one.to(states.dtype) for one in read)], dim=-1)
                states = run_packed(cast("nn.LSTM", layer), states, lengths)
                hidden_states.append(states)
        return BaseModelOutput(
            last_hidden_state=states, hidden_states=tuple(hidden_states) if output_hidden_states else None
        )


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(TaglmConfig, {AutoModel: TaglmModel})
