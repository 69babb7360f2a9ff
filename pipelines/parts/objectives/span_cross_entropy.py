"""Extractive question answering."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class SpanCrossEntropy(Objective, name="span_cross_entropy"):
    """Cross-entropy of the first and of the last token of the answer (Devlin et al. 2018, §4.2).

    In nats: the mean of the two, averaged over the batch.
    """

    paper = "arXiv:1810.04805"
    needs_fields = frozenset({Field.SPAN_LABELS})
    needs_signals = frozenset({Signal.SPAN_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import cross_entropy

        logits = cast("Tensor", step.signals[Signal.SPAN_LOGITS]).float()
        return {"span_cross_entropy": cross_entropy(logits, step.batch[Field.SPAN_LABELS])}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"span_cross_entropy": len(batch[Field.SPAN_LABELS])}
