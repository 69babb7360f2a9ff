"""Denoising entity auto-encoder: entities that were replaced, hidden or kept are predicted from the tokens that mention
them (Zhang et al. 2019, ERNIE §3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option
from pydantic import model_validator

from pipelines.errors import RecipeError
from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from typing import Self

    from torch import Tensor, nn
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.networks.ernie_thu import ErnieThuModel

ALIGNED_ENTITIES = Field.of_channel("aligned_entities")
"""int64 [B, L]: the entity that the network reads at each token, from 1; 0 for none."""


class DenoisingEntities(Objective, name="denoising_entities"):
    """−log softmax over the different entities of a row, of the products of their vectors with a linear function of a
    token's top state, at the entity that the token mentions (equation 7).

    Before that, some entities are replaced by another of the graph, and some are hidden from the network; what is
    predicted is what was there. The mean over all mentions, in nats; 0 where there is none. Its own linear layer trains
    with the network, whose backbone finds the entities and has their vectors.
    """

    paper = "arXiv:1905.07129"
    needs_fields = frozenset({Field.INPUT_IDS})
    may_read = frozenset({ALIGNED_ENTITIES})
    needs_signals = frozenset({Signal.HIDDEN_STATES})

    replaced: float = Option(0.05, ge=0, le=1)
    """Share of the mentions whose entity is replaced by a random one."""
    hidden: float = Option(0.15, ge=0, le=1)
    """Share of the mentions whose entity is hidden."""

    @model_validator(mode="after")
    def _shares(self) -> Self:
        if self.replaced + self.hidden > 1:
            raise ValueError("replaced and hidden are shares of the mentions: their sum must be at most 1")
        return self

    def build(self, student: PretrainedConfig, teacher: PretrainedConfig | None) -> nn.Module | None:
        """The linear layer. Raises RecipeError for a backbone that aligns no entities to its tokens."""
        from torch.nn import Linear

        if not getattr(student, "aligns_entities", False):
            raise RecipeError(
                f"objective {self.name}: it predicts the entities that a backbone aligns to its tokens, and "
                f"{student.model_type!r} aligns none; leave the objective out, or choose a backbone that reads a graph"
            )
        return Linear(student.hidden_size, student.entity_size)

    def rewrite(self, step: TrainingStep) -> Batch:
        import torch

        given = _mentioned(step.network, step.batch[Field.INPUT_IDS])
        step.notes[self.name] = given
        entities = len(_vectors(step.network)) - 1
        draws = torch.rand(given.shape, device=given.device)
        # one of the others, each as likely
        others = (given - 1 + torch.randint(1, max(2, entities), given.shape, device=given.device)) % max(1, entities)
        read = torch.where(draws < self.replaced, others + 1, given)
        read = torch.where((draws >= self.replaced) & (draws < self.replaced + self.hidden), 0, read)
        return {**step.batch, ALIGNED_ENTITIES: torch.where(given > 0, read, 0)}

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import cross_entropy

        given: Tensor | None = step.notes.get(self.name)
        if given is None:  # nothing rewrites held-out rows: the network reads what they mention
            given = _mentioned(step.network, step.batch[Field.INPUT_IDS])
        queries: Tensor = step.modules[self.name](step.signals[Signal.HIDDEN_STATES][-1])
        vectors = _vectors(step.network)[given].to(queries.dtype)
        scores = (queries @ vectors.transpose(1, 2)).float()
        same = (given[:, :, None] == given[:, None]) & (given > 0)[:, None]
        first = same.to(torch.int8).argmax(2)
        # an entity counts once, where it is mentioned first
        counts = (given > 0) & (first == torch.arange(given.shape[1], device=given.device))
        scores = scores.masked_fill(~counts[:, None], float("-inf"))
        mentions = given > 0
        total = cross_entropy(scores[mentions], first[mentions], reduction="sum")
        return {self.name: total / mentions.sum().clamp(min=1)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {self.name: int((_mentioned(network, batch[Field.INPUT_IDS]) > 0).sum())}


def _mentioned(network: PreTrainedModel, input_ids: Tensor) -> Tensor:
    """int64 [B, L]: the entity that each token of `input_ids` [B, L] mentions, from 1; 0 for none."""
    # what is counted is still where batches are made
    entities: Tensor = _backbone(network).aligner(input_ids.to(network.device))
    return entities


def _vectors(network: PreTrainedModel) -> Tensor:
    """[1 + entities, E]: the vectors of entities of the backbone of `network`."""
    return _backbone(network).entities


def _backbone(network: PreTrainedModel) -> ErnieThuModel:
    return cast("ErnieThuModel", network.base_model)
