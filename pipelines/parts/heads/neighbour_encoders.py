"""Vectors of a sentence and of its neighbour, by two encoders (Logeswaran & Lee 2018, Quick-Thought)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task

SOURCE_IDS = Field.of_rows("source_ids")
"""int64 [B, S]: token ids of the sentence that is read of each row, negative after its end."""
NEIGHBOURS = Signal.of_head("neighbour_vectors")
"""[B, H]: the vector of each row's target, by the second encoder; meaningless where there is no target."""


class NeighbourEncodersHead(Head, name="neighbour_encoders"):
    """The backbone reads the source of each row, a second encoder of the same architecture its target.

    The second encoder belongs to the head: a stage that continues with another head keeps the first alone, where the
    paper reads both side by side.
    """

    paper = "arXiv:1803.02893"
    needs = frozenset({Field.INPUT_IDS, Field.TARGET_IDS})
    may_read = frozenset({Field.ATTENTION_MASK, SOURCE_IDS})
    provides = frozenset({Signal.POOLED, NEIGHBOURS})
    needs_abilities = frozenset({Ability.ONE_STACK})

    pooling: Literal["last", "mean", "max"] = "last"
    """The vector of a sentence: the top state of its last token, the mean over its tokens, or the largest of each
    element."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.two_encoders import TwoEncoders

        config.encoders_pooling = self.pooling
        return TwoEncoders(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        pad = int(network.config.pad_token_id or 0)
        signals: dict[Signal, Any] = {}
        if Signal.POOLED in requested:
            source = cast("Tensor", batch[SOURCE_IDS] if SOURCE_IDS in batch else batch[Field.INPUT_IDS])
            mask = (source >= 0).long() if SOURCE_IDS in batch else batch.get(Field.ATTENTION_MASK)
            signals[Signal.POOLED] = network(source.masked_fill(source < 0, pad), mask)
        if NEIGHBOURS in requested:
            target = cast("Tensor", batch[Field.TARGET_IDS])
            read = (target >= 0).long()
            read[:, 0] = 1  # a row without a target is padding, whose vector is not used
            signals[NEIGHBOURS] = network(target.masked_fill(target < 0, pad), read, second=True)
        return signals
