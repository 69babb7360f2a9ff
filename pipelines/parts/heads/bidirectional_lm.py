"""Two language models, of which one predicts the next word and one the previous word (Peters et al. 2018, §3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class BidirectionalLMHead(Head, name="bidirectional_lm"):
    """One softmax over the whole vocabulary for both directions, where the paper draws 8192 samples of 793,471 words.

    A word that is not one token of the vocabulary is predicted as unknown; it is read by its letters all the same.
    """

    paper = "arXiv:1802.05365"
    provides = frozenset({Signal.BIDIRECTIONAL_LOGITS, Signal.BIDIRECTIONAL_TARGETS, Signal.HIDDEN_STATES})
    needs_abilities = frozenset({Ability.TWO_LANGUAGE_MODELS})
    needs_tokens = frozenset({"spelling"})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.elmo import ElmoConfig, ElmoForTwoLanguageModels

        assert isinstance(config, ElmoConfig)
        return ElmoForTwoLanguageModels(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        inputs = (batch[Field.INPUT_IDS], batch.get(Field.ATTENTION_MASK))
        signals: dict[Signal, Any] = {}
        if requested & {Signal.BIDIRECTIONAL_LOGITS, Signal.BIDIRECTIONAL_TARGETS}:
            logits, targets = zip(*network.predictions(*inputs), strict=True)  # type: ignore[operator]
            signals |= {Signal.BIDIRECTIONAL_LOGITS: logits, Signal.BIDIRECTIONAL_TARGETS: targets}
        if Signal.HIDDEN_STATES in requested:
            signals[Signal.HIDDEN_STATES] = network.base_model(*inputs, output_hidden_states=True).hidden_states
        return signals
