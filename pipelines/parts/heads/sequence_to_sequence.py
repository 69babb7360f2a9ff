"""Sequence-to-sequence head for plain text: the targets come from a corruption."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task


class SequenceToSequenceHead(Head, name="sequence_to_sequence"):
    """An encoder-decoder with the architecture's own vocabulary projection.

    The decoder reads the target shifted right by one, after the start token of the architecture's configuration.
    Padding of the target needs no mask: it comes after everything that is predicted.
    """

    paper = "arXiv:1910.10683"
    needs = frozenset({Field.INPUT_IDS, Field.TARGET_IDS})
    provides = frozenset({Signal.TARGET_LOGITS})
    needs_abilities = frozenset({Ability.ENCODER_DECODER})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from transformers import AutoModelForSeq2SeqLM

        network: PreTrainedModel = AutoModelForSeq2SeqLM.from_config(config)
        return network

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        if Signal.TARGET_LOGITS not in requested:
            return {}
        # transformers types it as a module
        shifted = network.prepare_decoder_input_ids_from_labels(batch[Field.TARGET_IDS])  # type: ignore[operator]
        outputs = network(
            input_ids=batch[Field.INPUT_IDS],
            attention_mask=batch.get(Field.ATTENTION_MASK),
            decoder_input_ids=shifted,
            use_cache=False,
        )
        return {Signal.TARGET_LOGITS: outputs.logits}
