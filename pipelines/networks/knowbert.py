"""KnowBert: BERT with an entity linker, and what it links to, between two of its layers (Peters et al. 2019,
arXiv:1909.04164, §3).

The mentions of a row are the names of entities that its tokens, as they are read, consist of, also those within others;
a name with a masked token is none, so that no entity tells what is to be predicted. Knowledge attention and
recontextualisation (KAR, §3.3), for the states H of the layer below:

    H_proj = W₁ H + b₁                                          words, in the width of entities
    S      = Σ softmax(w · H_proj) H_proj over the tokens of each mention
    Sᵉ     = TransformerBlock(S)                                mentions attend to each other
    ψ_mk   = MLP(p_mk, sᵉ_m · e_mk)                             the linker: priors and products with the candidates
    ẽ_m    = Σ_k softmax(ψ_m)_k e_mk                            over the candidates with ψ ≥ δ; e_NULL where none is
    S′ᵉ    = Sᵉ + ẽ
    H′_proj = MLP(MultiHeadAttention(H_proj, S′ᵉ, S′ᵉ))         words attend to mentions
    H′     = H + W₂ H′_proj + b₂                                the input of the layer above

As in the authors' code, products are divided by √E, mentions and entities are normalised, and MLP and attention have
residuals. A row without a mention keeps H. Vectors of entities are those of TransE on the graph, and do not train.

Shapes: B rows of L tokens, G mentions in a row at most, K candidates of a mention at most; N names, E width of
entities.
"""

from __future__ import annotations

from math import sqrt

import torch
from torch import Tensor, nn
from transformers import AutoModel
from transformers.masking_utils import create_bidirectional_mask
from transformers.modeling_outputs import BaseModelOutput

from pipelines.networks.attention_free import register_architecture
from pipelines.networks.entity_bert import EntityConfig, EntityModel, mention_matcher
from pipelines.networks.mentions import entity_table
from pipelines.networks.span_attention import SpanAttention
from pipelines.networks.zen import Matches


class KnowBertConfig(EntityConfig):
    """Dimensions of BERT and of the knowledge attention, and the graph."""

    model_type = "knowbert"

    after: int = 1
    """Number of layers below the knowledge attention."""
    entity_intermediate_size: int = 1024
    linker_size: int = 100
    """Width of the hidden layer of the linker."""
    threshold: float | None = None
    """Score from which a candidate counts; None: all count."""


class KnowledgeAttention(nn.Module):
    """Knowledge attention and recontextualisation, without the residual of the words (see the module)."""

    entities: Tensor
    """[1 + entities, E]: their vectors; row 0 is none."""
    candidates: Tensor
    """int64 [1 + N, K]: rows of `entities` of each name; row 0 is no name."""
    priors: Tensor
    """[1 + N, K]."""

    def __init__(self, config: KnowBertConfig) -> None:
        super().__init__()
        width = config.entity_size
        rates = config.hidden_dropout_prob, config.attention_probs_dropout_prob
        self.down, self.up = nn.Linear(config.hidden_size, width), nn.Linear(width, config.hidden_size)
        self.pooling = nn.Linear(width, 1)
        self.mention_norm, self.entity_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mentions = SpanAttention(width, config.entity_heads, config.entity_intermediate_size, *rates)
        self.linker = nn.Sequential(nn.Linear(2, config.linker_size), nn.ReLU(), nn.Linear(config.linker_size, 1))
        self.words = SpanAttention(width, config.entity_heads, config.entity_intermediate_size, *rates)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.threshold = config.threshold
        self.null = None if config.threshold is None else nn.Parameter(torch.zeros(width))
        candidates, priors = config.candidates or [], config.priors or []
        most = max((len(one) for one in candidates), default=1)
        # saved with the weights, which are meaningless for any other graph
        self.register_buffer("entities", entity_table(config.facts or [], config.num_entities, width))
        rows = [[0] * most, *([1 + one for one in row] + [0] * (most - len(row)) for row in candidates)]
        self.register_buffer("candidates", torch.tensor(rows, dtype=torch.long))
        shares = [[0.0] * most, *([*row] + [0.0] * (most - len(row)) for row in priors)]
        self.register_buffer("priors", torch.tensor(shares))

    def forward(self, states: Tensor, matches: Matches) -> Tensor:
        """[B, L, H]: what mentions add to `states` [B, L, H], 0 in rows without any."""
        words = self.down(states)
        exists = matches.ids > 0
        weights = self.pooling(words).masked_fill(~matches.covers, float("-inf"))
        weights = weights.masked_fill(~exists[:, None], 0.0).softmax(1)
        mentions = self.mention_norm(weights.transpose(1, 2) @ words)
        mentions = self.mentions(mentions, mentions, exists)
        candidates = self.candidates[matches.ids]
        vectors = self.entity_norm(self.entities[candidates])
        products = (mentions.unsqueeze(2) * vectors).sum(-1) / sqrt(vectors.shape[-1])
        scores = self.linker(torch.stack([self.priors[matches.ids], products], dim=-1)).squeeze(-1)
        meant = self.dropout(self._meant(scores, candidates > 0, vectors))
        recalled: Tensor = self.up(self.words(words, mentions + meant, exists))
        return recalled * exists.any(1)[:, None, None]

    def _meant(self, scores: Tensor, counts: Tensor, vectors: Tensor) -> Tensor:
        """[B, G, E]: the mean of the `vectors` [B, G, K, E] of candidates that `counts` bool [B, G, K], weighted by
        their `scores` [B, G, K]; 0, or that of no entity, for a mention without any."""
        if self.threshold is not None:
            counts = counts & (scores >= self.threshold)
        some = counts.any(-1, keepdim=True)
        weights = scores.masked_fill(~counts, float("-inf")).masked_fill(~some, 0.0).softmax(-1) * some
        meant = (weights.unsqueeze(-1) * vectors).sum(2)
        return meant if self.null is None else torch.where(some, meant, self.null)


class KnowBertModel(EntityModel):
    """The backbone."""

    config_class = KnowBertConfig
    base_model_prefix = "knowbert"

    def __init__(self, config: KnowBertConfig) -> None:
        super().__init__(config)
        self.matcher = mention_matcher(config)
        self.knowledge = KnowledgeAttention(config)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        output_hidden_states: bool = False,
    ) -> BaseModelOutput:
        """Run on `input_ids` [B, L]; `hidden_states` of the layer below have what mentions add to it."""
        states = self.embeddings(input_ids=input_ids, token_type_ids=token_type_ids, position_ids=position_ids)
        mask = create_bidirectional_mask(config=self.config, inputs_embeds=states, attention_mask=attention_mask)
        hidden_states = [states]
        for number, layer in enumerate(self.layers, start=1):
            states = layer(states, mask)
            if number == self.config.after:
                states = states + self.knowledge(states, self.matcher(input_ids))
            hidden_states.append(states)
        return BaseModelOutput(
            last_hidden_state=states, hidden_states=tuple(hidden_states) if output_hidden_states else None
        )


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(KnowBertConfig, {AutoModel: KnowBertModel})
