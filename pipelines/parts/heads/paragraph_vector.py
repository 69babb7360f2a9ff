"""The vector of a paragraph, as a stage on plain text keeps it (Le & Mikolov 2014)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class ParagraphVectorHead(Head, name="paragraph_vector"):
    """The inferred vector of each row, without any layer above it."""

    paper = "arXiv:1405.4053"
    needs = frozenset({Field.INPUT_IDS})
    provides = frozenset({Signal.POOLED})
    needs_abilities = frozenset({Ability.PARAGRAPHS})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.paragraph_vectors import ParagraphEncoder, ParagraphVectorsConfig

        assert isinstance(config, ParagraphVectorsConfig)
        return ParagraphEncoder(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        return {Signal.POOLED: network(batch[Field.INPUT_IDS], batch.get(Field.ATTENTION_MASK))}
