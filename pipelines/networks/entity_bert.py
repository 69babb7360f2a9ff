"""What encoders that read a graph of entities share: the graph in their configuration, and BERT's layers."""

from __future__ import annotations

from torch import nn
from transformers import BertConfig
from transformers.models.bert.modeling_bert import BertEmbeddings, BertLayer, BertPreTrainedModel

from pipelines.networks.entity_names import BEGINS
from pipelines.networks.mentions import MentionMatcher


class EntityConfig(BertConfig):
    """Dimensions of BERT, the graph, and the names of its entities."""

    entity_size: int = 200
    """Width of the vectors of entities, in elements."""
    entity_heads: int = 4
    """Number of heads of attention in that width."""
    names: list[list[int]] | None = None
    """The tokens of each name."""
    candidates: list[list[int]] | None = None
    """The entities that each name may mention, indices from 0."""
    priors: list[list[float]] | None = None
    """The prior probability of each."""
    facts: list[list[int]] | None = None
    """Head, relation and tail of each fact, indices from 0."""
    num_entities: int = 0
    token_roles: list[int] | None = None
    """What each token does (`entity_names.token_roles`)."""


class EntityModel(BertPreTrainedModel):
    """Embeddings and `num_hidden_layers` layers over tokens; subclasses add what entities do."""

    def __init__(self, config: EntityConfig) -> None:
        super().__init__(config)
        self.embeddings = BertEmbeddings(config)
        self.layers = nn.ModuleList(BertLayer(config, layer_idx=at) for at in range(config.num_hidden_layers))

    def get_input_embeddings(self) -> nn.Module:
        return self.embeddings.word_embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.embeddings.word_embeddings = value  # type: ignore[assignment]  # transformers assigns any module


def mention_matcher(config: EntityConfig) -> MentionMatcher:
    """Finds the names of `config` in rows of tokens."""
    return MentionMatcher(config.names or [], config.token_roles or [BEGINS] * config.vocab_size)
