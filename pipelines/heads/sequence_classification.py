"""One label for a text: an encoder body under a pooling and a linear layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from pipelines.heads import Head
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel


class SequenceClassification(Head, name="sequence_classification"):
    """Class scores of a text. With few labels and a small body, mean pooling beats the first token by far."""

    paper = "arXiv:1810.04805"
    needs = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    provides = frozenset({Signal.LOGITS, Signal.POOLED, Signal.HIDDEN_STATES})

    pooling: Literal["cls", "mean"] = "mean"
    """What represents the text: the first token's top hidden state, or the mean over its tokens."""

    def build(self, config: PretrainedConfig, labels: Sequence[str]) -> PreTrainedModel:
        from pipelines.networks.sequence_classifier import SequenceClassifier

        config.classifier_pooling = self.pooling
        config.id2label = dict(enumerate(labels))
        config.label2id = {label: index for index, label in enumerate(labels)}
        return SequenceClassifier(config)

    def signals(
        self, network: PreTrainedModel, batch: Mapping[Field, Tensor], wanted: frozenset[Signal]
    ) -> dict[Signal, Tensor | tuple[Tensor, ...]]:
        said = network(
            input_ids=batch[Field.INPUT_IDS],
            attention_mask=batch[Field.ATTENTION_MASK],
            output_hidden_states=Signal.HIDDEN_STATES in wanted,
        )
        signals: dict[Signal, Tensor | tuple[Tensor, ...]] = {Signal.LOGITS: said.logits, Signal.POOLED: said.pooled}
        if Signal.HIDDEN_STATES in wanted:
            signals[Signal.HIDDEN_STATES] = said.hidden_states
        return signals
