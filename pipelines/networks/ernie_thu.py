"""ERNIE of Tsinghua: layers over tokens, then layers that fuse tokens with the entities aligned to them (Zhang et al.
2019, arXiv:1905.07129, §3).

The mentions of a row are the names of entities that its tokens, as they are read, consist of; the longest of those that
begin with a token is aligned to that token, with the most probable entity of the name. An aggregator (§3.3), for tokens
w and entities e:

    w̃ = MultiHeadAttention(w), ẽ = MultiHeadAttention(e)          each among its own kind
    h = σ(W̃_t w̃ + W̃_e ẽ + b̃)                                   of a token and its entity, equation 5
    h = σ(W̃_t w̃ + b̃)                                            of a token without one, equation 6
    w = W_t h + b_t, e = W_e h + b_e

As in the authors' code, attention and outputs have residuals and normalisations, as BERT's have, in place of another σ;
σ is GELU. Vectors of entities are those of TransE on the graph, and do not train.

Shapes: B rows of L tokens; H width of tokens, E of entities.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu
from transformers import AutoModel
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import BaseModelOutput
from transformers.models.bert.modeling_bert import BertAttention

from pipelines.networks.attention_free import register_architecture
from pipelines.networks.entity_bert import EntityConfig, EntityModel, mention_matcher
from pipelines.networks.mentions import entity_table
from pipelines.networks.span_attention import CrossAttention
from pipelines.vocabulary import Field

ALIGNED_ENTITIES = Field.of_channel("aligned_entities")
"""The channel of the entity that is aligned to each token, from 1; 0 for none."""


class ErnieThuConfig(EntityConfig):
    """Dimensions of BERT and of the aggregators, and the graph."""

    model_type = "ernie_thu"

    aligns_entities: bool = True
    """That the backbone finds an entity for each of its tokens, and has vectors of them."""
    num_aggregators: int = 6
    """Number of layers over tokens and entities, above `num_hidden_layers` over tokens alone."""
    entity_size: int = 100


class EntityAligner(nn.Module):
    """The entity that is aligned to each token of a row."""

    meant: Tensor
    """int64 [1 + N]: the most probable entity of each name, from 1; row 0 is no name."""

    def __init__(self, config: ErnieThuConfig) -> None:
        super().__init__()
        self.matcher = mention_matcher(config)
        pairs = zip(config.candidates or [], config.priors or [], strict=True)
        best = [1 + entities[max(range(len(shares)), key=shares.__getitem__)] for entities, shares in pairs]
        # saved with the weights, which are meaningless for any other graph
        self.register_buffer("meant", torch.tensor([0, *best], dtype=torch.long))

    def forward(self, input_ids: Tensor) -> Tensor:
        """int64 [B, L]: the entity, from 1, of the longest name that begins with each token of `input_ids` [B, L]; 0
        where none does."""
        ids, covers = self.matcher(input_ids)
        sizes = covers.sum(1)
        begins = covers & (covers.to(torch.int8).cumsum(1) == 1)
        longest, chosen = (begins * sizes[:, None]).max(2)
        entities: Tensor = self.meant[ids.gather(1, chosen)] * (longest > 0)
        return entities


class Aggregator(nn.Module):
    """A layer over tokens and the entities aligned to them (see the module)."""

    def __init__(self, config: ErnieThuConfig) -> None:
        super().__init__()
        rates = config.hidden_dropout_prob, config.attention_probs_dropout_prob
        self.attention = BertAttention(config)
        self.entity_attention = CrossAttention(config.entity_size, config.entity_heads, *rates)
        self.of_tokens = nn.Linear(config.hidden_size, config.intermediate_size)
        self.of_entities = nn.Linear(config.entity_size, config.intermediate_size, bias=False)
        self.tokens = nn.Linear(config.intermediate_size, config.hidden_size)
        self.entities = nn.Linear(config.intermediate_size, config.entity_size)
        self.token_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.entity_norm = nn.LayerNorm(config.entity_size, eps=config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, states: Tensor, mask: Tensor | None, entities: Tensor, aligned: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens [B, L, H] and entities [B, L, E] of `states` and `entities`; of the latter only those count for which
        `aligned` bool [B, L]."""
        states, _ = self.attention(states, mask)
        entities = self.entity_attention(entities, entities, aligned)
        fused = gelu(self.of_tokens(states) + self.of_entities(entities) * aligned[..., None])
        return (
            self.token_norm(states + self.dropout(self.tokens(fused))),
            self.entity_norm(entities + self.dropout(self.entities(fused))),
        )


class ErnieThuModel(EntityModel):
    """The backbone."""

    config_class = ErnieThuConfig
    base_model_prefix = "ernie_thu"
    channels_read = (str(ALIGNED_ENTITIES),)

    entities: Tensor
    """[1 + entities, E]: their vectors; row 0 is 0."""

    def __init__(self, config: ErnieThuConfig) -> None:
        super().__init__(config)
        self.aligner = EntityAligner(config)
        self.aggregators = nn.ModuleList(Aggregator(config) for _ in range(config.num_aggregators))
        self.register_buffer("entities", entity_table(config.facts or [], config.num_entities, config.entity_size))
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        channels: Mapping[str, Tensor] | None = None,
        output_hidden_states: bool = False,
    ) -> BaseModelOutput:
        """Run on `input_ids` [B, L]. The entities int64 [B, L] of `channels` are those of the tokens; without that
        channel they are found in the row. `hidden_states` are those of tokens."""
        states = self.embeddings(input_ids=input_ids, token_type_ids=token_type_ids, position_ids=position_ids)
        mask = create_bidirectional_mask(config=self.config, inputs_embeds=states, attention_mask=attention_mask)
        hidden_states = [states]
        for layer in self.layers:
            states = layer(states, mask)
            hidden_states.append(states)
        given = (channels or {}).get(str(ALIGNED_ENTITIES))
        aligned = self.aligner(input_ids) if given is None else given
        entities = self.entities[aligned]
        for layer in self.aggregators:
            states, entities = layer(states, mask, entities, aligned > 0)
            hidden_states.append(states)
        return BaseModelOutput(
            last_hidden_state=states, hidden_states=tuple(hidden_states) if output_hidden_states else None
        )


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(ErnieThuConfig, {AutoModel: ErnieThuModel})
