"""The mean vector of a row's words in their contexts, as a stage on plain text keeps it (Huang et al. 2012)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class PrototypeVectorHead(Head, name="prototype_vector"):
    """The mean over a row of the vectors that its words have in their contexts, without any layer above it."""

    paper = "Huang, Socher, Manning & Ng 2012"
    needs = frozenset({Field.INPUT_IDS})
    provides = frozenset({Signal.POOLED})
    needs_abilities = frozenset({Ability.PROTOTYPES})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.prototype_vectors import PrototypeEncoder, PrototypeVectorsConfig

        assert isinstance(config, PrototypeVectorsConfig)
        return PrototypeEncoder(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        return {Signal.POOLED: network(batch[Field.INPUT_IDS], batch.get(Field.ATTENTION_MASK))}
