"""AWD-LSTM: stacked LSTMs under five kinds of dropout (Merity, Keskar, Socher 2017, "Regularizing and optimizing LSTM
language models", arXiv:1708.02182).

    tokens ─▶ embeddings (embedding, input dropout) ─▶ layers (weight-drop; hidden dropout between) ─▶ output dropout
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import dropout
from transformers import AutoModel, AutoModelForCausalLM, PretrainedConfig
from transformers import initialization as init
from transformers.utils.generic import ModelOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture


class AwdLstmConfig(PretrainedConfig):
    """Dimensions and dropout rates of an AWD-LSTM; the defaults are the paper's for the Penn Treebank (§5)."""

    model_type = "awd_lstm"

    vocab_size: int = 10000
    hidden_size: int = 400
    """Width of the embeddings and of the top layer, which share it so that input and output weights can be tied."""
    inner_size: int = 1150
    """Width of the layers below the top."""
    num_hidden_layers: int = 3
    embedding_dropout: float = 0.1
    """Share of the vocabulary's words that are dropped from a whole batch (§4.3)."""
    input_dropout: float = 0.4
    """Share of the embeddings' elements dropped, with one mask for all tokens of a row (§4.2), like the next two."""
    inner_dropout: float = 0.3
    """Share of the elements dropped between layers."""
    output_dropout: float = 0.4
    """Share of the top layer's elements dropped."""
    weight_dropout: float = 0.5
    """Share of the hidden-to-hidden weights dropped, with one mask for all tokens of a batch (§2)."""
    initializer_range: float = 0.1
    """Embeddings are initialised uniformly in ± this value (§5)."""
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True


@dataclass
class AwdLstmOutput(ModelOutput):
    """Outputs of an AWD-LSTM. W is the width of a layer."""

    last_hidden_state: Tensor | None = None
    """[B, L, H]: the top layer's outputs, after the output dropout."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [B, L, W], each after its dropout, embeddings first. W is larger between bottom and top."""
    memory: tuple[Tensor, ...] | None = None
    """Two tensors [B, W] for each layer, its output and cell state after the last token, detached. Rows that are to be
    continued must not have padding."""
    raw: Tensor | None = None
    """[B, L, H]: the top layer's outputs before the output dropout."""


@dataclass
class AwdLstmCausalLMOutput(AwdLstmOutput):
    """Outputs of an AWD-LSTM with language-modelling head."""

    logits: Tensor | None = None
    """[B, L, V]: scores of the next token."""


class VariationalDropout(nn.Dropout):
    """One mask for all tokens of a row (Gal & Ghahramani 2016; Merity et al. 2017, §4.2)."""

    def forward(self, states: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return states
        return states * dropout(states.new_ones(len(states), 1, states.shape[-1]), self.p)


class EmbeddingDropout(nn.Dropout):
    """Dropout of whole words instead of elements: all occurrences in the batch (Merity et al. 2017, §4.3)."""

    def look_up(self, ids: Tensor, table: nn.Embedding) -> Tensor:
        """[B, L, H]: the embeddings of `ids` [B, L] in `table`, 0 for dropped words, the others rescaled."""
        embedded: Tensor = table(ids)
        if not self.training or self.p == 0:
            return embedded
        return embedded * dropout(embedded.new_ones(table.num_embeddings), self.p)[ids].unsqueeze(-1)


class WeightDropLSTM(nn.LSTM):
    """An LSTM layer with DropConnect on its hidden-to-hidden weights, one mask a forward pass (Merity et al. 2017,
    §2)."""

    def __init__(self, inputs: int, width: int, weight_dropout: float) -> None:
        super().__init__(inputs, width, batch_first=True)
        self.weight_dropout = nn.Dropout(weight_dropout)

    def run_steps(self, states: Tensor, memory: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs [B, L, W], and the last output and cell state [B, W], from `states` [B, L, …] and `memory`, two of
        [B, W].

        All time steps run in torch's own kernel: weights are dropped once, before it starts.
        """
        weights = [self.weight_ih_l0, self.weight_dropout(self.weight_hh_l0), self.bias_ih_l0, self.bias_hh_l0]
        before = tuple(part.to(states.dtype).unsqueeze(0) for part in memory)
        outputs, last, cell = torch.lstm(states, before, weights, True, 1, 0.0, self.training, False, True)
        return outputs, last[0], cell[0]


class AwdLstmPreTrainedModel(AttentionFreeModel):
    """Base class of the backbone and its language model: configuration, names and weight initialisation."""

    config_class = AwdLstmConfig
    base_model_prefix = "awd_lstm"
    _input_embed_layer = "embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Embedding):
            init.uniform_(module.weight, -self.config.initializer_range, self.config.initializer_range)
        elif isinstance(module, nn.LSTM):
            bound = module.hidden_size**-0.5
            for weights in module.parameters():
                init.uniform_(weights, -bound, bound)
        elif isinstance(module, nn.Linear):
            init.uniform_(module.weight, -self.config.initializer_range, self.config.initializer_range)
            if module.bias is not None:
                init.zeros_(module.bias)


class AwdLstmModel(AwdLstmPreTrainedModel):
    """The backbone. It reads from left to right, so padding on the right does not affect the tokens before it."""

    def __init__(self, config: AwdLstmConfig) -> None:
        super().__init__(config)
        widths = [config.hidden_size, *[config.inner_size] * (config.num_hidden_layers - 1), config.hidden_size]
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            WeightDropLSTM(below, width, config.weight_dropout) for below, width in pairwise(widths)
        )
        self.embedding_dropout = EmbeddingDropout(config.embedding_dropout)
        self.input_dropout = VariationalDropout(config.input_dropout)
        self.inner_dropout = VariationalDropout(config.inner_dropout)
        self.output_dropout = VariationalDropout(config.output_dropout)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        memory: tuple[Tensor, ...] | None = None,
        output_hidden_states: bool = False,
    ) -> AwdLstmOutput:
        """Run on `input_ids` [B, L], starting from the state `memory`, zeros if it is None. `attention_mask` is
        ignored."""
        states = self.input_dropout(self.embedding_dropout.look_up(input_ids, self.embeddings))
        hidden_states, final_state = [states], list[Tensor]()
        for index, layer in enumerate(cast("list[WeightDropLSTM]", self.layers)):
            if memory is None:
                zeros = states.new_zeros(len(states), layer.hidden_size)
                before = (zeros, zeros)
            else:
                before = (memory[2 * index], memory[2 * index + 1])
            raw, last, cell = layer.run_steps(states, before)
            final_state += [last.detach(), cell.detach()]
            top = index == len(self.layers) - 1
            states = self.output_dropout(raw) if top else self.inner_dropout(raw)
            hidden_states.append(states)
        return AwdLstmOutput(
            last_hidden_state=states,
            hidden_states=tuple(hidden_states) if output_hidden_states else None,
            memory=tuple(final_state),
            raw=raw,
        )


class AwdLstmForCausalLM(AwdLstmPreTrainedModel):
    """A language model: the backbone with an output layer that is tied to the embeddings (Merity et al. 2017, §4.4)."""

    _tied_weights_keys = {"lm_head.weight": "awd_lstm.embeddings.weight"}  # noqa: RUF012  # declared by transformers

    def __init__(self, config: AwdLstmConfig) -> None:
        super().__init__(config)
        self.awd_lstm = AwdLstmModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        memory: tuple[Tensor, ...] | None = None,
        output_hidden_states: bool = False,
    ) -> AwdLstmCausalLMOutput:
        outputs = self.awd_lstm(input_ids, attention_mask, memory, output_hidden_states)
        return AwdLstmCausalLMOutput(**outputs, logits=self.lm_head(outputs.last_hidden_state))


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(AwdLstmConfig, {AutoModel: AwdLstmModel, AutoModelForCausalLM: AwdLstmForCausalLM})
