"""A bidirectional LSTM over words, above its own embeddings, the states of other networks, or both (Lample et al. 2016,
arXiv:1603.01360; Peters et al. 2018, arXiv:1802.05365, §4)."""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import AutoModel, PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture
from pipelines.networks.features import FeatureReader


class BilstmConfig(PretrainedConfig):
    """Dimensions of a bidirectional LSTM, and the networks that it reads."""

    model_type = "bilstm"

    vocab_size: int = 30000
    embedding_size: int = 100
    """Width of the trained vector of each token; 0: none."""
    hidden_size: int = 200
    """Width of a layer's output, half of it from each direction."""
    num_hidden_layers: int = 1
    input_dropout: float = 0.5
    """Share of the elements dropped of what the first layer reads."""
    features: list[dict[str, Any]] | None = None
    """Settings of each `FeatureReader`, in the order of the vectors."""
    initializer_range: float = 0.02
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False


class BilstmPreTrainedModel(AttentionFreeModel):
    """Base class of networks of such layers: configuration, names, weight initialisation, and the reading of features.

    A subclass has the attribute `features`, a list of `FeatureReader`.
    """

    config_class = BilstmConfig
    base_model_prefix = "bilstm"
    _input_embed_layer = "embeddings"
    features: nn.ModuleList

    @property
    def readers(self) -> list[FeatureReader]:
        """The networks that are read, in the order of their vectors."""
        return [reader for reader in self.features if isinstance(reader, FeatureReader)]

    def read_features(
        self,
        ids: Tensor | None,
        mask: Tensor | None,
        words: Tensor | None,
        states: tuple[tuple[Tensor, ...] | None, ...] | None,
    ) -> list[Tensor]:
        """The vectors [B, L, width] of each network that is read, by the fields of a batch with their names after
        `feature_`; known `states` stand in place of the networks that they are the states of."""
        vectors = []
        for number, reader in enumerate(self.readers):
            known = states[number] if states is not None else None
            if known is None:
                assert ids is not None and mask is not None and words is not None
                known = reader.states(ids[:, number], mask[:, number], words[:, number])
            vectors.append(reader.combine(known))
        return vectors

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Embeddings uniform in ± √(3 / width), as in Lample et al. 2016, §4.3's code; LSTMs in ± 1 / √width."""
        if isinstance(module, nn.Embedding):
            bound = (3 / module.embedding_dim) ** 0.5
            init.uniform_(module.weight, -bound, bound)
        elif isinstance(module, nn.LSTM):
            bound = module.hidden_size**-0.5
            for weights in module.parameters():
                init.uniform_(weights, -bound, bound)


class BilstmModel(BilstmPreTrainedModel):
    """The backbone. Padding on the right affects no other token."""

    def __init__(self, config: BilstmConfig) -> None:
        super().__init__(config)
        self.features = nn.ModuleList(FeatureReader(settings) for settings in config.features or ())
        self.embeddings = nn.Embedding(config.vocab_size, config.embedding_size) if config.embedding_size else None
        read = config.embedding_size + sum(reader.width for reader in self.readers)
        widths = [read, *[config.hidden_size] * config.num_hidden_layers]
        self.input_dropout = nn.Dropout(config.input_dropout)
        self.layers = nn.ModuleList(
            nn.LSTM(below, config.hidden_size // 2, batch_first=True, bidirectional=True) for below in widths[:-1]
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

        `feature_states` stand in place of the networks that they are the states of. The states of a layer [B, L, H] are
        both directions side by side, 0 at padding; the first of `hidden_states` is what the first layer reads.
        """
        inputs = [] if self.embeddings is None else [self.embeddings(input_ids)]
        inputs += self.read_features(feature_ids, feature_mask, feature_words, feature_states)
        states, lengths = torch.cat(inputs, dim=-1), row_lengths(input_ids, attention_mask)
        hidden_states = [states]
        states = self.input_dropout(states)
        # half precision gains nothing at this width, and a packed LSTM has no such kernel on every device
        with torch.autocast(states.device.type, enabled=False):
            for layer in self.layers:
                states = run_packed(cast("nn.LSTM", layer), states, lengths)
                hidden_states.append(states)
        return BaseModelOutput(
            last_hidden_state=states, hidden_states=tuple(hidden_states) if output_hidden_states else None
        )


def row_lengths(ids: Tensor, mask: Tensor | None) -> Tensor:
    """int64 [B]: the number of tokens of each of the rows `ids` [B, L]; L where there is no `mask` [B, L]."""
    return torch.full_like(ids[:, 0], ids.shape[1]) if mask is None else mask.sum(1)


def run_packed(layer: nn.LSTM, states: Tensor, lengths: Tensor) -> Tensor:
    """[B, L, H]: the outputs of an LSTM over the first `lengths` [B] of `states` [B, L, …], 0 beyond."""
    states = states.to(next(layer.parameters()).dtype)
    packed = pack_padded_sequence(states, lengths.clamp(min=1).cpu(), batch_first=True, enforce_sorted=False)
    outputs, _ = pad_packed_sequence(layer(packed)[0], batch_first=True, total_length=states.shape[1])
    return outputs


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(BilstmConfig, {AutoModel: BilstmModel})
