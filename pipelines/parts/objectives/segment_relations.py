"""Sentence order in three ways (Wang et al. 2019, StructBERT §2.2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

RELATIONS = Field.of_rows("segment_relations")
RELATION_LOGITS = Signal.of_head("relation_logits")


class SegmentRelationsObjective(Objective, name="segment_relations"):
    """Cross-entropy of whether the second segment of a row follows the first, precedes it, or is of another document.

    In nats: the mean over the rows that are pairs; 0 when no row is.
    """

    paper = "arXiv:1908.04577"
    needs_fields = frozenset({RELATIONS})
    needs_signals = frozenset({RELATION_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import cross_entropy

        logits, labels = cast("Tensor", step.signals[RELATION_LOGITS]), step.batch[RELATIONS]
        # the labels of rows that are no pairs are torch's ignored index
        total = cross_entropy(logits.float(), labels, reduction="sum")
        return {"segment_relations": total / (labels >= 0).sum().clamp(min=1)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"segment_relations": int((batch[RELATIONS] >= 0).sum())}
