"""Masked language modelling (Devlin et al. 2018, §3.1, task 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class MaskedLM(Objective, name="masked_lm"):
    """Cross-entropy of the original token at every masked position, mean over the batch's masked positions."""

    paper = "arXiv:1810.04805"
    needs_fields = frozenset({Field.MASKED_LABELS})
    needs_signals = frozenset({Signal.MASKED_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from pipelines.networks.vocabulary_loss import vocabulary_cross_entropy

        logits = cast("Tensor", step.signals[Signal.MASKED_LOGITS])
        inplace = Signal.MASKED_LOGITS in step.overwritable
        return {"masked_lm": vocabulary_cross_entropy(logits, step.batch[Field.MASKED_LABELS], inplace=inplace)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"masked_lm": len(batch[Field.MASKED_LABELS])}
