"""Span-boundary objective: predict masked tokens from the edges of their spans (Joshi et al. 2019, §3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class SpanBoundaryObjective(Objective, name="span_boundary"):
    """Cross-entropy of the original tokens of masked spans, predicted from their edges; mean over masked positions.

    The paper adds it to masked_lm with equal weight.
    """

    paper = "arXiv:1907.10529"
    needs_fields = frozenset({Field.MASKED_LABELS})
    needs_signals = frozenset({Signal.BOUNDARY_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from pipelines.networks.vocabulary_loss import vocabulary_cross_entropy

        logits: Tensor = step.signals[Signal.BOUNDARY_LOGITS]
        inplace = Signal.BOUNDARY_LOGITS in step.overwritable
        return {"span_boundary": vocabulary_cross_entropy(logits, step.batch[Field.MASKED_LABELS], inplace=inplace)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"span_boundary": len(batch[Field.MASKED_LABELS])}
