"""A recurrent decoder that writes a target from what an encoder of any kind has read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import Field as Option

from pipelines.parts.heads import Batch, Head
from pipelines.vocabulary import Ability, Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.task_families import Task

SOURCE_IDS = Field.of_rows("source_ids")
"""int64 [B, S]: token ids of the part of each row that is read, negative after its end."""


class RecurrentDecoderHead(Head, name="recurrent_decoder"):
    """One recurrent layer over the target, above any single stack of layers; the padding token begins the target.

    It reads the part of a row that a corruption has chosen as source, or the whole row. The encoder's word embeddings
    are the decoder's too, where it has some.
    """

    paper = "arXiv:1506.06726"
    needs = frozenset({Field.INPUT_IDS, Field.TARGET_IDS})
    may_read = frozenset({Field.ATTENTION_MASK, SOURCE_IDS})
    provides = frozenset({Signal.TARGET_LOGITS})
    needs_abilities = frozenset({Ability.ONE_STACK})

    writes: str = Option("target", pattern=r"[a-z][a-z_]*")
    """What is written, in one word. Lines whose heads are equal share one decoder; with different words each has its
    own."""
    cell: Literal["gru", "lstm"] = "gru"
    """Kind of the recurrent layer."""
    size: int = Option(256, gt=0)
    """Width of the recurrent layer."""
    source: Literal["vector", "attention"] = "vector"
    """How the source is read: one vector beside every word of the target (Kiros et al. 2015, §2.1, eq. 5–8), or
    attention to all of its tokens (Luong et al. 2015, §3.1), with the vector as the first state."""
    pooling: Literal["last", "mean", "max"] = "last"
    """The vector of a source: the top state of its last token, the mean over its tokens, or the largest of each
    element."""

    def build(self, config: PretrainedConfig, task: Task | None) -> PreTrainedModel:
        from pipelines.networks.recurrent_decoder import RecurrentDecoder

        config.decoder_cell, config.decoder_size = self.cell, self.size
        config.decoder_reads, config.decoder_pooling = self.source, self.pooling
        return RecurrentDecoder(config)

    def signals(self, network: PreTrainedModel, batch: Batch, requested: frozenset[Signal]) -> dict[Signal, Any]:
        if Signal.TARGET_LOGITS not in requested:
            return {}
        ids, mask = cast("Tensor", batch[Field.INPUT_IDS]), batch.get(Field.ATTENTION_MASK)
        if SOURCE_IDS in batch:
            source = cast("Tensor", batch[SOURCE_IDS])
            mask = (source >= 0).long()
            ids = source.masked_fill(source < 0, int(network.config.pad_token_id or 0))
        return {Signal.TARGET_LOGITS: network(ids, batch[Field.TARGET_IDS], mask)}
