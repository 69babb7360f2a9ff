"""NEZHA: BERT with functional relative positions (Wei et al. 2019, arXiv:1909.00204, §2.2), which transformers has no
longer.

The key and the value of token j, as token i reads them, get the same vector of sines and cosines of j − i in every
layer and head, equations 2 to 5 of the paper:

    a_ij[2k] = sin((j − i) · w_k)     a_ij[2k + 1] = cos((j − i) · w_k)     w_k = 10000^(−2k / d)

Sines of a difference are products of sines of i and of j. So the scores are those of queries and keys of twice the
width, and the added values those of values of twice the width, turned back: any attention function computes them, and
nothing of the size of all pairs of tokens is stored. Distances are not clipped, as in the equations; the authors' code
clips them at 64.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import BertConfig
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.models.bert.modeling_bert import BertSelfAttention, eager_attention_forward

from pipelines.networks.bert_variants import (
    BertVariantForMaskedLM,
    BertVariantForPreTraining,
    BertVariantModel,
    register_variant,
)

LONGEST_WAVE = 10000.0
"""Wave length of the last pair of elements, in tokens and multiples of 2π."""


class NezhaConfig(BertConfig):
    """Dimensions of NEZHA: those of BERT; `max_position_embeddings` has no meaning."""

    model_type = "nezha"


class NezhaEmbeddings(nn.Module):
    """The sum of the vectors of tokens and token types, normalised."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, padding_idx=config.pad_token_id)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(
        self,
        input_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        **others: object,
    ) -> Tensor:
        """[B, L, H]: the input of the first layer."""
        vectors = self.word_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        if token_type_ids is None:
            token_type_ids = torch.zeros(vectors.shape[:2], dtype=torch.long, device=vectors.device)
        result: Tensor = self.dropout(self.LayerNorm(vectors + self.token_type_embeddings(token_type_ids)))
        return result


class NezhaSelfAttention(BertSelfAttention):
    """Self-attention whose keys and values know how far they are from the query."""

    def __init__(self, config: BertConfig, layer_idx: int) -> None:
        super().__init__(config, layer_idx=layer_idx)  # type: ignore[no-untyped-call]  # transformers has no types
        if self.attention_head_size % 2:
            raise ValueError(
                f"a head is {self.attention_head_size} wide, and functional relative positions need pairs of elements; "
                "choose a hidden size that is an even multiple of the number of heads"
            )

    def forward(  # type: ignore[override]  # transformers lists what its attention functions take
        self,
        hidden_states: Tensor,
        attention_mask: Tensor | None = None,
        past_key_values: object = None,
        **others: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """[B, L, H] of `hidden_states` [B, L, H], and the probabilities where the attention function gives them."""
        shape = (*hidden_states.shape[:-1], -1, self.attention_head_size)
        query, key, value = (
            projection(hidden_states).view(shape).transpose(1, 2) for projection in (self.query, self.key, self.value)
        )
        sines, cosines = (one.to(query.dtype) for one in _waves(shape[1], self.attention_head_size, query.device))
        waves = torch.stack([sines, cosines], dim=-1).flatten(-2).expand_as(key)
        attend = ALL_ATTENTION_FUNCTIONS.get_interface(self.config._attn_implementation, eager_attention_forward)
        context, probabilities = attend(
            self,
            torch.cat([query, _turn(query, sines, cosines)], dim=-1),
            torch.cat([key, waves], dim=-1),
            torch.cat([value, waves], dim=-1),
            attention_mask,
            dropout=self.dropout.p if self.training else 0.0,
            scaling=self.scaling,
            **others,
        )
        plain, turned = context.transpose(1, 2).chunk(2, dim=-1)
        # the inverse of the turn of the query
        context = plain + _turn(turned, -sines.to(turned.dtype), cosines.to(turned.dtype))
        return context.transpose(1, 2).flatten(-2), probabilities


def _waves(length: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Sines and cosines float32 [L, width / 2] of each position times w_k."""
    exponents = torch.arange(0, width, 2, device=device, dtype=torch.float32) / width
    angles = torch.arange(length, device=device, dtype=torch.float32)[:, None] * LONGEST_WAVE**-exponents
    return angles.sin(), angles.cos()


def _turn(vectors: Tensor, sines: Tensor, cosines: Tensor) -> Tensor:
    """Pairs of elements of `vectors` [..., L, width] turned by the angle of their position, whose `sines` and `cosines`
    are [L, width / 2]: u with u_i · waves_j = q_i · a_ij for a query q."""
    first, second = vectors.view(*vectors.shape[:-1], -1, 2).unbind(-1)
    return torch.stack([first * cosines + second * sines, second * cosines - first * sines], dim=-1).flatten(-2)


class NezhaModel(BertVariantModel):
    """The backbone."""

    config_class = NezhaConfig

    @staticmethod
    def input_embeddings(config: BertConfig) -> nn.Module:
        return NezhaEmbeddings(config)

    @staticmethod
    def self_attention(config: BertConfig, number: int) -> nn.Module:
        return NezhaSelfAttention(config, number)


class NezhaForMaskedLM(BertVariantForMaskedLM):
    """The backbone below a prediction of masked tokens."""

    config_class = NezhaConfig
    backbone_class = NezhaModel


class NezhaForPreTraining(BertVariantForPreTraining):
    """The backbone below a prediction of masked tokens and of pairs of segments."""

    config_class = NezhaConfig
    backbone_class = NezhaModel


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_variant(NezhaConfig, NezhaModel, NezhaForMaskedLM, NezhaForPreTraining)
