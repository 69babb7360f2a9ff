"""Classes of the rows of plain text (Sun et al. 2019, ERNIE 2.0 §4.2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field as Option

from pipelines.parts.heads import Batch, Head, backbone_inputs
from pipelines.vocabulary import Ability, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task

ROW_LOGITS = Signal.of_head("row_logits")
"""[B, C]: scores of the classes of each row."""


class RowClassesHead(Head, name="row_classes"):
    """Scores of classes of each row, by a linear layer on the pooled state of the first token."""

    paper = "arXiv:1907.12412"
    provides = frozenset({ROW_LOGITS})
    needs_abilities = frozenset({Ability.ONE_STACK, Ability.SEGMENT_PAIRS})

    classes: int = Option(3, ge=2)
    """Number of classes."""

    def continues(self, other: Head) -> bool:
        return isinstance(other, type(self)) and self.classes == other.classes

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.sequence_classifier import POOLER, SequenceClassifier

        config.classifier_pooling, config.classifier_hidden, config.classifier_orders = POOLER, None, 1
        config.id2label = {number: str(number) for number in range(self.classes)}
        config.label2id = {str(number): number for number in range(self.classes)}
        return SequenceClassifier(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        return {ROW_LOGITS: network(**backbone_inputs(batch, network)).logits}
