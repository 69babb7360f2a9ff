"""Recurrent language models: word vectors, stacked layers of one kind of cell, and a softmax over the vocabulary.

    tokens ─▶ embeddings ─▶ layer ─▶ … ─▶ layer ─▶ scores of the next token
                              ▲ state of the tokens before, also those of the row that this one continues

A cell is a subclass of `RecurrentModel` (elman.py, lstm.py). Shapes: B rows, L tokens, H the width, V the vocabulary.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, cast

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig
from transformers import initialization as init
from transformers.utils.generic import ModelOutput

from pipelines.networks.attention_free import AttentionFreeModel


class RecurrentConfig(PretrainedConfig):
    """Dimensions of a recurrent language model."""

    vocab_size: int = 10000
    hidden_size: int = 256
    """Width of the embeddings and of every layer."""
    num_hidden_layers: int = 1
    initializer_range: float = 0.1
    """Embeddings and output weights are initialised uniformly in ± this value."""
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False


@dataclass
class RecurrentOutput(ModelOutput):
    """Outputs of the layers."""

    last_hidden_state: Tensor | None = None
    """[B, L, H]: the top layer's outputs."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [B, L, H], embeddings first."""
    memory: tuple[Tensor, ...] | None = None
    """Tensors [B, H], the same number for each layer: its state after the last token, detached. Rows that are to be
    continued must not have padding."""
    raw: Tensor | None = None
    """[B, L, H]: the top layer's outputs; the same, since nothing is dropped."""


@dataclass
class RecurrentCausalLMOutput(RecurrentOutput):
    """Outputs of a recurrent language model."""

    logits: Tensor | None = None
    """[B, L, V]: scores of the next token."""


class RecurrentPreTrainedModel(AttentionFreeModel):
    """Base class of the layers and the language model: names and weight initialisation."""

    base_model_prefix = "recurrent"
    _input_embed_layer = "embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.Embedding | nn.Linear):
            init.uniform_(module.weight, -self.config.initializer_range, self.config.initializer_range)
            if isinstance(module, nn.Linear):
                init.zeros_(module.bias)
        elif isinstance(module, nn.RNNBase):
            bound = module.hidden_size**-0.5
            for weights in module.parameters():
                init.uniform_(weights, -bound, bound)


class RecurrentModel(RecurrentPreTrainedModel):
    """The layers. They read from left to right, so padding on the right does not affect the tokens before it."""

    states_per_layer: ClassVar[int]
    """Tensors [B, H] that a layer keeps from token to token."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(self.layer(config.hidden_size) for _ in range(config.num_hidden_layers))
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    @staticmethod
    @abstractmethod
    def layer(width: int) -> nn.RNNBase:
        """A layer of torch's, batch first."""

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        memory: tuple[Tensor, ...] | None = None,
        output_hidden_states: bool = False,
    ) -> RecurrentOutput:
        """Run on `input_ids` [B, L], starting from the state `memory`, zeros if it is None. `attention_mask` is
        ignored."""
        states = self.embeddings(input_ids)
        hidden_states, final = [states], list[Tensor]()
        kept = self.states_per_layer
        for index, layer in enumerate(cast("list[nn.RNNBase]", self.layers)):
            if memory is None:
                before = [states.new_zeros(len(states), layer.hidden_size)] * kept
            else:
                before = [part.to(states.dtype) for part in memory[kept * index : kept * (index + 1)]]
            states, after = layer(states, _as_torch(before))
            final += [part.detach()[0] for part in (after if kept > 1 else (after,))]
            hidden_states.append(states)
        return RecurrentOutput(
            last_hidden_state=states,
            hidden_states=tuple(hidden_states) if output_hidden_states else None,
            memory=tuple(final),
            raw=states,
        )


def _as_torch(parts: list[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """The state of one layer as torch's layers take it: each part [1, B, H], by itself where it is the only one."""
    stacked = tuple(part.unsqueeze(0) for part in parts)
    return stacked if len(stacked) > 1 else stacked[0]


class RecurrentForCausalLM(RecurrentPreTrainedModel):
    """A language model: the layers, and a linear layer to the scores of the vocabulary."""

    backbone_class: ClassVar[type[RecurrentModel]]

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.recurrent = self.backbone_class(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        memory: tuple[Tensor, ...] | None = None,
        output_hidden_states: bool = False,
    ) -> RecurrentCausalLMOutput:
        outputs = self.recurrent(input_ids, attention_mask, memory, output_hidden_states)
        return RecurrentCausalLMOutput(**outputs, logits=self.lm_head(outputs.last_hidden_state))
