"""Transformer-XL: attention over the row and the states kept of the rows before, with relative positions (Dai et al.
2019, arXiv:1901.02860, §3).

    memory of layer n − 1 ──┐
    states of layer n − 1 ──┴─▶ keys, values
    states of layer n − 1 ────▶ queries ──▶ layer n

Shapes: B rows, L tokens, M tokens of memory, H the width, N heads, D the width of a head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.functional import pad, scaled_dot_product_attention
from transformers import AutoModel, AutoModelForCausalLM, PretrainedConfig
from transformers import initialization as init
from transformers.utils.generic import ModelOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture


class TransformerXlConfig(PretrainedConfig):
    """Dimensions of a Transformer-XL."""

    model_type = "transformer_xl"

    vocab_size: int = 10000
    hidden_size: int = 128
    num_hidden_layers: int = 2
    num_attention_heads: int = 2
    intermediate_size: int = 512
    memory_length: int = 64
    """Most tokens before the row whose states are kept."""
    hidden_dropout: float = 0.1
    initializer_range: float = 0.02
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = True


@dataclass
class TransformerXlOutput(ModelOutput):
    """Outputs of the layers."""

    last_hidden_state: Tensor | None = None
    """[B, L, H]: states of the top layer."""
    hidden_states: tuple[Tensor, ...] | None = None
    """Layers + 1 tensors [B, L, H], embeddings first."""
    memory: tuple[Tensor, ...] | None = None
    """For each layer [B, up to `memory_length`, H], detached: what it reads of the tokens up to the last. Rows that are
    to be continued must not have padding."""
    raw: Tensor | None = None
    """[B, L, H]: the states of the top layer before the last dropout."""


@dataclass
class TransformerXlCausalLMOutput(TransformerXlOutput):
    """Outputs of a language model."""

    logits: Tensor | None = None
    """[B, L, V]: scores of the next token."""


class RelativeAttention(nn.Module):
    """Attention of each token to those before it, by content and by distance (§3.3).

    For query i and key j, with R the sinusoids of their distance: (q + u)ᵀ k_j + (q + v)ᵀ W_R R_{i−j}, over √D.
    """

    def __init__(self, config: TransformerXlConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        width = config.hidden_size
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)
        self.distance = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width, bias=False)

    def forward(
        self, states: Tensor, context: Tensor, sinusoids: Tensor, hidden: Tensor, content: Tensor, position: Tensor
    ) -> Tensor:
        """[B, L, H] of `states` [B, L, H], which attend to `context` [B, M + L, H].

        `sinusoids` [M + L, H] are of the distances M + L − 1 … 0, `hidden` [L, M + L] is −∞ where a key comes after the
        query; `content` and `position` [N, 1, D] are the vectors u and v of all layers.
        """
        query, key, value = (self._split(part) for part in (self.query(states), self.key(context), self.value(context)))
        distance = self._split(self.distance(sinusoids)[None])
        by_distance = shifted((query + position) @ distance.transpose(-1, -2))
        # the scaled scores by distance are what the fused kernel adds to those by content
        bias = by_distance * query.shape[-1] ** -0.5 + hidden
        attended = scaled_dot_product_attention(query + content, key, value, attn_mask=bias)
        return cast("Tensor", self.output(attended.transpose(1, 2).flatten(2)))

    def _split(self, states: Tensor) -> Tensor:
        """[B, N, tokens, D] of [B, tokens, H]."""
        return states.view(*states.shape[:2], self.heads, -1).transpose(1, 2)


def shifted(scores: Tensor) -> Tensor:
    """[…, L, K] in order of keys, of `scores` […, L, K] whose column c is of distance K − 1 − c.

    Row i moves L − 1 − i to the left (appendix B). Keys after the query have values without meaning.
    """
    rows, keys = scores.shape[-2:]
    lead = scores.shape[:-2]
    return pad(scores, (1, 0)).reshape(*lead, keys + 1, rows)[..., 1:, :].reshape(*lead, rows, keys)


class TransformerXlLayer(nn.Module):
    """Attention and a feed-forward network, each followed by its residual and normalisation."""

    def __init__(self, config: TransformerXlConfig) -> None:
        super().__init__()
        self.attention = RelativeAttention(config)
        self.attention_norm = nn.LayerNorm(config.hidden_size)
        self.inner = nn.Linear(config.hidden_size, config.intermediate_size)
        self.outer = nn.Linear(config.intermediate_size, config.hidden_size)
        self.outer_norm = nn.LayerNorm(config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout)

    def forward(self, states: Tensor, context: Tensor, *relative: Tensor) -> Tensor:
        attended = self.dropout(self.attention(states, context, *relative))
        states = self.attention_norm(states + attended)
        return cast("Tensor", self.outer_norm(states + self.dropout(self.outer(self.inner(states).relu()))))


class TransformerXlPreTrainedModel(AttentionFreeModel):
    """Base class of the layers and the language model: names and weight initialisation."""

    config_class = TransformerXlConfig
    base_model_prefix = "transformer"
    _input_embed_layer = "embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        spread = self.config.initializer_range
        if isinstance(module, nn.Linear | nn.Embedding):
            init.normal_(module.weight, std=spread)
            if isinstance(module, nn.Linear) and module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm):
            init.ones_(module.weight)
            init.zeros_(module.bias)
        elif isinstance(module, TransformerXlModel):
            init.normal_(module.content, std=spread)
            init.normal_(module.position, std=spread)


class TransformerXlModel(TransformerXlPreTrainedModel):
    """The layers. They read from left to right, so padding on the right does not affect the tokens before it."""

    def __init__(self, config: TransformerXlConfig) -> None:
        super().__init__(config)
        heads, width = config.num_attention_heads, config.hidden_size
        self.embeddings = nn.Embedding(config.vocab_size, width)
        self.content = nn.Parameter(torch.empty(heads, 1, width // heads))
        self.position = nn.Parameter(torch.empty(heads, 1, width // heads))
        self.layers = nn.ModuleList(TransformerXlLayer(config) for _ in range(config.num_hidden_layers))
        self.dropout = nn.Dropout(config.hidden_dropout)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        memory: tuple[Tensor, ...] | None = None,
        output_hidden_states: bool = False,
    ) -> TransformerXlOutput:
        """Run on `input_ids` [B, L] after the tokens whose states `memory` has; no gradient goes back into it.
        `attention_mask` is ignored."""
        # as in the code of the paper: with tied weights, embeddings of the size of the sinusoids
        states = self.dropout(self.embeddings(input_ids) * self.config.hidden_size**0.5)
        kept = 0 if memory is None else memory[0].shape[1]
        length = input_ids.shape[1]
        wave = sinusoids(kept + length, self.config.hidden_size, states)
        future = torch.ones(length, kept + length, dtype=torch.bool, device=states.device).triu(1 + kept)
        hidden = torch.zeros(future.shape, dtype=states.dtype, device=states.device).masked_fill(future, -torch.inf)
        relative = (self.dropout(wave), hidden, self.content, self.position)
        hidden_states, after = [states], list[Tensor]()
        for index, layer in enumerate(self.layers):
            before = states if memory is None else torch.cat([memory[index].to(states.dtype), states], dim=1)
            after.append(before[:, max(0, before.shape[1] - self.config.memory_length) :].detach())
            states = layer(states, before, *relative)
            hidden_states.append(states)
        return TransformerXlOutput(
            last_hidden_state=self.dropout(states),
            hidden_states=tuple(hidden_states) if output_hidden_states else None,
            memory=tuple(after),
            raw=states,
        )


def sinusoids(keys: int, width: int, like: Tensor) -> Tensor:
    """[K, H]: sines and cosines of the distances K − 1 … 0 (Vaswani et al. 2017, §3.5), not learned."""
    frequencies = 10000 ** -(torch.arange(0, width, 2, device=like.device, dtype=torch.float32) / width)
    angles = torch.arange(keys - 1, -1, -1, device=like.device, dtype=torch.float32)[:, None] * frequencies
    return torch.cat([angles.sin(), angles.cos()], dim=-1).to(like.dtype)


class TransformerXlForCausalLM(TransformerXlPreTrainedModel):
    """A language model: the layers, and an output layer that is tied to the embeddings."""

    _tied_weights_keys = {"lm_head.weight": "transformer.embeddings.weight"}  # noqa: RUF012  # declared by transformers

    def __init__(self, config: TransformerXlConfig) -> None:
        super().__init__(config)
        self.transformer = TransformerXlModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        memory: tuple[Tensor, ...] | None = None,
        output_hidden_states: bool = False,
    ) -> TransformerXlCausalLMOutput:
        outputs = self.transformer(input_ids, attention_mask, memory, output_hidden_states)
        return TransformerXlCausalLMOutput(**outputs, logits=self.lm_head(outputs.last_hidden_state))


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(
        TransformerXlConfig, {AutoModel: TransformerXlModel, AutoModelForCausalLM: TransformerXlForCausalLM}
    )
