"""Classification and multiple choice."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class CrossEntropy(Objective, name="cross_entropy"):
    """Cross-entropy of the correct class or choice, mean over the batch."""

    needs_fields = frozenset({Field.LABELS})
    needs_signals = frozenset({Signal.LOGITS})

    smoothing: float = Option(0.0, ge=0, lt=1)
    """Label smoothing: share of the target distribution that is spread evenly over all classes, or over the choices of
    the question (Szegedy et al. 2016, §7)."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        logits = cast("Tensor", step.signals[Signal.LOGITS]).float()
        log_probabilities = logits.log_softmax(-1)
        correct = log_probabilities.gather(-1, step.batch[Field.LABELS].unsqueeze(-1)).mean()
        if not self.smoothing:
            return {"cross_entropy": -correct}
        valid = logits.isfinite()  # padding of a question with fewer choices is −inf
        uniform = (log_probabilities.masked_fill(~valid, 0).sum(-1) / valid.sum(-1)).mean()
        return {"cross_entropy": -(1 - self.smoothing) * correct - self.smoothing * uniform}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"cross_entropy": len(batch[Field.LABELS])}
