"""Several vectors for each frequent word: its prototypes, between which the words around it decide (Reisinger & Mooney
2010; Huang et al. 2012).

Shapes: B rows of L tokens, V words, P prototypes of all words together, K of one word at most, H elements of a vector.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize
from transformers import AutoModel, PretrainedConfig
from transformers import initialization as init
from transformers.modeling_outputs import BaseModelOutput

from pipelines.networks.attention_free import AttentionFreeModel, register_architecture

SMALLEST = 1e-3
"""Added to the distance of a context from a centre before division, so that none counts more than a thousand times."""


class PrototypeVectorsConfig(PretrainedConfig):
    """Dimensions of tables of words and of their prototypes."""

    model_type = "prototype_vectors"

    vocab_size: int = 30000
    hidden_size: int = 100
    num_hidden_layers: int = 1
    window: int = 5
    """Neighbours on each side that are a word's context."""
    prototypes: int | None = None
    """Number of prototypes of all words together (P); None: one for each word."""
    most_prototypes: int = 1
    """The most of one word (K)."""
    pad_token_id: int | None = 0
    tie_word_embeddings: bool = False


def context_directions(values: Tensor, documents: Tensor, window: int) -> Tensor:
    """[B, L, H]: the sum of `values` [B, L, H] over the neighbours of each token in its document, of length 1; 0 where
    there are none. `documents` are int64 [B, L]."""
    sums = torch.zeros_like(values)
    for distance in range(1, min(window, values.shape[1] - 1) + 1):
        same = (documents[:, distance:] == documents[:, :-distance]).unsqueeze(-1)
        sums[:, distance:] += values[:, :-distance] * same
        sums[:, :-distance] += values[:, distance:] * same
    return normalize(sums, dim=-1)


class PrototypeVectorsPreTrainedModel(AttentionFreeModel):
    """Base class: configuration, names and weight initialisation."""

    config_class = PrototypeVectorsConfig
    base_model_prefix = "prototype_vectors"
    _input_embed_layer = "embeddings"

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        """Small random vectors; one prototype for each word, whatever its context."""
        if isinstance(module, nn.Embedding):
            bound = 0.5 / self.config.hidden_size
            init.uniform_(module.weight, -bound, bound)
        elif isinstance(module, PrototypeVectorsModel):
            init.zeros_(module.informativeness)
            init.zeros_(module.further)
            init.zeros_(module.others)
            init.zeros_(module.centres)


class PrototypeVectorsModel(PrototypeVectorsPreTrainedModel):
    """Words, by whose vectors a context is known, and prototypes, of which a state is made.

    The first prototype of a word has the word's own number, further ones have numbers from `further` on.
    """

    informativeness: Tensor
    further: Tensor
    others: Tensor
    centres: Tensor

    def __init__(self, config: PrototypeVectorsConfig) -> None:
        super().__init__(config)
        size = config.prototypes or config.vocab_size
        self.embeddings = nn.Embedding(config.vocab_size, config.hidden_size)
        self.prototypes = nn.Embedding(size, config.hidden_size)
        # [V]: logarithm of the inverse share of documents with the word; 0 for what is no word
        self.register_buffer("informativeness", torch.zeros(config.vocab_size))
        # int64 [V] each: number of a word's second prototype, and how many there are besides the first
        self.register_buffer("further", torch.zeros(config.vocab_size, dtype=torch.int64))
        self.register_buffer("others", torch.zeros(config.vocab_size, dtype=torch.int64))
        # [P, H]: the centre of the contexts of each prototype, of length 1
        self.register_buffer("centres", torch.zeros(size, config.hidden_size))
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, output_hidden_states: bool = False
    ) -> BaseModelOutput:
        """States [B, L, H] of `input_ids` [B, L]; the first of `hidden_states` are the words' own vectors."""
        words = self.embeddings(input_ids)
        weights = self.informativeness[input_ids]
        if attention_mask is not None:
            weights = weights * attention_mask
        documents = torch.zeros_like(input_ids)
        context = context_directions((words * weights.unsqueeze(-1)).detach(), documents, self.config.window)
        numbers, shares = self.shares(input_ids, context)
        states = (normalize(self.prototypes(numbers), dim=-1) * shares.unsqueeze(-1)).sum(2)
        return BaseModelOutput(
            last_hidden_state=states, hidden_states=(words, states) if output_hidden_states else None
        )

    def shares(self, input_ids: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        """int64 [B, L, K] numbers of the prototypes of `input_ids` [B, L], and [B, L, K] how likely each is in the
        `context` [B, L, H]: inversely as the cosine distance of its centre. A word with fewer has its first again, of
        likelihood 0.

        The inner product of two states is therefore the average similarity of their prototypes, each pair weighted by
        its likelihood in both contexts (AvgSimC of Reisinger & Mooney 2010, §4; Huang et al. 2012, eq. 7).
        """
        rank = torch.arange(self.config.most_prototypes, device=input_ids.device)
        real = rank <= self.others[input_ids].unsqueeze(-1)
        later = self.further[input_ids].unsqueeze(-1) + rank - 1
        numbers = torch.where(real & (rank > 0), later, input_ids.unsqueeze(-1))
        cosines = (self.centres[numbers] @ context.unsqueeze(-1)).squeeze(-1)
        closeness = real / (1 - cosines + SMALLEST)
        return numbers, closeness / closeness.sum(-1, keepdim=True)


class PrototypeEncoder(PrototypeVectorsPreTrainedModel):
    """The model as a stage on plain text keeps it: the mean of a row's vectors."""

    def __init__(self, config: PrototypeVectorsConfig) -> None:
        super().__init__(config)
        self.prototype_vectors = PrototypeVectorsModel(config)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers does not type it

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """[B, H]: the mean of the states of `input_ids` [B, L] where `attention_mask` is 1."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        states: Tensor = self.prototype_vectors(input_ids, mask).last_hidden_state * mask.unsqueeze(-1)
        return states.sum(1) / mask.sum(1, keepdim=True).clamp(min=1)


def register_auto_classes() -> None:
    """Register this architecture with the Auto classes of transformers."""
    register_architecture(PrototypeVectorsConfig, {AutoModel: PrototypeVectorsModel})
