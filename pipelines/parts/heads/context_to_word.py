"""Contexts and the words that fit into them, in one space (Melamud, Goldberger & Dagan 2016, §3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task

CENTER_TOKENS = Field.of_rows("center_tokens")
"""int64 [B, L]: 1 for a token that is a centre; N in all, in the order of `CENTERS`."""


class ContextToWordHead(Head, name="context_to_word"):
    """A table of target words, each of which scores its product with the vector of a context."""

    paper = "doi:10.18653/v1/K16-1006"
    needs = frozenset({Field.INPUT_IDS, CENTER_TOKENS, Field.CENTERS, Field.NEGATIVES})
    provides = frozenset({Signal.NOISE_LOGITS})
    needs_abilities = frozenset({Ability.CONTEXT_VECTORS})

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.context2vec import Context2vecConfig, ContextToWord

        assert isinstance(config, Context2vecConfig)
        return ContextToWord(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        scores = network(
            batch[Field.INPUT_IDS], batch.get(Field.ATTENTION_MASK), batch[CENTER_TOKENS], batch[Field.CENTERS],
            batch[Field.NEGATIVES],
        )  # fmt: skip
        return {Signal.NOISE_LOGITS: scores}
