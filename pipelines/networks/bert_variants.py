"""BERT with embeddings and self-attention of an architecture's own; layers, pooler and heads are BERT's, with its names
(Devlin et al. 2018, arXiv:1810.04805)."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from torch import nn
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForPreTraining, BertConfig
from transformers.models.bert.modeling_bert import (
    BertEncoder,
    BertForMaskedLM,
    BertForPreTraining,
    BertModel,
    BertOnlyMLMHead,
    BertPooler,
    BertPreTrainedModel,
    BertPreTrainingHeads,
)

from pipelines.networks.attention_free import register_architecture


class BertVariantModel(BertModel):
    """The backbone. A subclass says what reads the tokens, and what attends in each layer."""

    def __init__(self, config: BertConfig, add_pooling_layer: bool = True) -> None:
        # BERT's own constructor would build embeddings and attention that are not these
        BertPreTrainedModel.__init__(self, config)
        self.config = config
        self.gradient_checkpointing = False
        self.embeddings = self.input_embeddings(config)  # type: ignore[assignment]  # transformers types BERT's own
        self.encoder = BertEncoder(config)
        for number, layer in enumerate(self.encoder.layer):
            layer.get_submodule("attention").self = self.self_attention(config, number)
        self.pooler = BertPooler(config) if add_pooling_layer else None
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    @staticmethod
    @abstractmethod
    def input_embeddings(config: BertConfig) -> nn.Module:
        """The module that maps tokens [B, L] to the input of the first layer [B, L, H], called as BERT's embeddings."""

    @staticmethod
    @abstractmethod
    def self_attention(config: BertConfig, number: int) -> nn.Module:
        """The self-attention of layer `number`, called as BERT's."""


class BertVariantForMaskedLM(BertForMaskedLM):
    """The backbone below a prediction of masked tokens."""

    backbone_class: ClassVar[type[BertVariantModel]]

    def __init__(self, config: BertConfig) -> None:
        BertPreTrainedModel.__init__(self, config)
        self.bert = self.backbone_class(config, add_pooling_layer=False)
        self.cls = BertOnlyMLMHead(config)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it


class BertVariantForPreTraining(BertForPreTraining):
    """The backbone below a prediction of masked tokens and of pairs of segments."""

    backbone_class: ClassVar[type[BertVariantModel]]

    def __init__(self, config: BertConfig) -> None:
        BertPreTrainedModel.__init__(self, config)
        self.bert = self.backbone_class(config)
        self.cls = BertPreTrainingHeads(config)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it


def register_variant(
    config: type[BertConfig],
    backbone: type[BertVariantModel],
    masked_lm: type[BertVariantForMaskedLM],
    pre_training: type[BertVariantForPreTraining],
) -> None:
    """Register a variant with the Auto classes of transformers."""
    register_architecture(
        config, {AutoModel: backbone, AutoModelForMaskedLM: masked_lm, AutoModelForPreTraining: pre_training}
    )
