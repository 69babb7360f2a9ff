"""Classes of the tokens of plain text (Sun et al. 2019, ERNIE 2.0 §4.2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field as Option

from pipelines.parts.heads import Batch, Head, backbone_inputs
from pipelines.vocabulary import Ability, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class TokenClassesHead(Head, name="token_classes"):
    """Scores of classes at each token, by a linear layer."""

    paper = "arXiv:1907.12412"
    provides = frozenset({Signal.TAG_LOGITS})
    needs_abilities = frozenset({Ability.ONE_STACK})

    classes: int = Option(2, ge=2)
    """Number of classes."""

    def continues(self, other: Head) -> bool:
        return isinstance(other, type(self)) and self.classes == other.classes

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.token_classifier import TokenClassifier

        config.id2label = {number: str(number) for number in range(self.classes)}
        config.label2id = {str(number): number for number in range(self.classes)}
        config.tag_transitions = False
        return TokenClassifier(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        return {Signal.TAG_LOGITS: network(**backbone_inputs(batch, network)).logits}
