"""An encoder whose attention is a matter of its configuration: products scaled or not, one of four kinds of positions
(Vaswani et al. 2017, arXiv:1706.03762, §3.2.1 and §3.5; Wei et al. 2019, arXiv:1909.00204, §2.2, relative positions).

All else is BERT's layer, with BERT's names: with scaled products and learned positions it is BERT.

    learned      a trained vector of each position, added to the input
    sinusoidal   p_t[2k] = sin(t · w_k), p_t[2k + 1] = cos(t · w_k), w_k = 10000^(−2k / H), added to the input
    relative     NEZHA's: sines and cosines of j − i in the keys and values of each layer, none in the input
    none         nothing says where a token is: permuted rows give permuted states
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertSelfAttention

from pipelines.networks.bert_variants import (
    BertVariantForMaskedLM,
    BertVariantForPreTraining,
    BertVariantModel,
    register_variant,
)
from pipelines.networks.nezha import LONGEST_WAVE, NezhaConfig, NezhaEmbeddings, NezhaSelfAttention

LEARNED, SINUSOIDAL, RELATIVE, NONE = KINDS = ("learned", "sinusoidal", "relative", "none")
"""Values of `position_kind`."""


class StudiedTransformerConfig(NezhaConfig):
    """Dimensions of BERT, and what is studied of its attention."""

    model_type = "studied_transformer"

    scaled_products: bool = True
    """Whether products of queries and keys are divided by the root of a head's width."""
    position_kind: str = LEARNED
    """One of `KINDS`."""


class SinusoidalPositions(nn.Module):
    """Sines and cosines of positions, with the root mean square that a learned table begins with, so that they neither
    drown the vectors of the tokens nor are drowned by them."""

    def __init__(self, config: StudiedTransformerConfig) -> None:
        super().__init__()
        self.width, self.size = config.hidden_size, math.sqrt(2) * config.initializer_range

    def forward(self, position_ids: Tensor) -> Tensor:
        """float32 [B, L, H] of int64 [B, L]."""
        exponents = torch.arange(0, self.width, 2, device=position_ids.device, dtype=torch.float32) / self.width
        angles = position_ids[..., None] * LONGEST_WAVE**-exponents
        return self.size * torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)[..., : self.width]


class StudiedEmbeddings(NezhaEmbeddings):
    """The sum of the vectors of tokens, token types and, where they are added to the input, positions."""

    def __init__(self, config: StudiedTransformerConfig) -> None:
        super().__init__(config)
        if config.position_kind == LEARNED:
            self.position_embeddings: nn.Module | None = nn.Embedding(
                config.max_position_embeddings, config.hidden_size
            )
        else:
            self.position_embeddings = SinusoidalPositions(config) if config.position_kind == SINUSOIDAL else None

    def forward(  # type: ignore[override]  # NEZHA's takes positions, and does not read them
        self,
        input_ids: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        position_ids: Tensor | None = None,
        **others: object,
    ) -> Tensor:
        """[B, L, H]: the input of the first layer."""
        vectors = self.word_embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        if self.position_embeddings is not None:
            if position_ids is None:
                position_ids = torch.arange(vectors.shape[1], device=vectors.device)[None]
            vectors = vectors + self.position_embeddings(position_ids).to(vectors.dtype)
        return super().forward(token_type_ids=token_type_ids, inputs_embeds=vectors)


class StudiedTransformerModel(BertVariantModel):
    """The backbone. Raises ValueError for values of its own two keys that there are not."""

    config_class = StudiedTransformerConfig

    def __init__(self, config: StudiedTransformerConfig, add_pooling_layer: bool = True) -> None:
        if config.position_kind not in KINDS:
            raise ValueError(f"position_kind: {config.position_kind!r} is none of {', '.join(KINDS)}")
        if not isinstance(config.scaled_products, bool):
            raise ValueError(f"scaled_products: {config.scaled_products!r} is neither true nor false")
        super().__init__(config, add_pooling_layer)

    @staticmethod
    def input_embeddings(config: BertConfig) -> nn.Module:
        assert isinstance(config, StudiedTransformerConfig)
        return StudiedEmbeddings(config)

    @staticmethod
    def self_attention(config: BertConfig, number: int) -> nn.Module:
        assert isinstance(config, StudiedTransformerConfig)
        kind = NezhaSelfAttention if config.position_kind == RELATIVE else BertSelfAttention
        attention = kind(config, layer_idx=number)
        if not config.scaled_products:
            attention.scaling = 1.0
        return attention


class StudiedTransformerForMaskedLM(BertVariantForMaskedLM):
    """The backbone below a prediction of masked tokens."""

    config_class = StudiedTransformerConfig
    backbone_class = StudiedTransformerModel


class StudiedTransformerForPreTraining(BertVariantForPreTraining):
    """The backbone below a prediction of masked tokens and of pairs of segments."""

    config_class = StudiedTransformerConfig
    backbone_class = StudiedTransformerModel


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_variant(
        StudiedTransformerConfig,
        StudiedTransformerModel,
        StudiedTransformerForMaskedLM,
        StudiedTransformerForPreTraining,
    )
