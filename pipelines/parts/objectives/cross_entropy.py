"""Classification, and the choice among several."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class CrossEntropy(Objective, name="cross_entropy"):
    """Cross-entropy of the right class or choice, mean over the batch."""

    needs_fields = frozenset({Field.LABELS})
    needs_signals = frozenset({Signal.LOGITS})

    smoothing: float = Option(0.0, ge=0, lt=1)
    """Share of the target that is spread evenly over all classes, or over the choices that there are (Szegedy et al. 2016,
    §7)."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        logits = cast("Tensor", step.signals[Signal.LOGITS]).float()
        chances = logits.log_softmax(-1)
        right = chances.gather(-1, step.batch[Field.LABELS].unsqueeze(-1)).mean()
        if not self.smoothing:
            return {"cross_entropy": -right}
        there = logits.isfinite()  # a choice that a question does not have scores −inf
        even = (chances.masked_fill(~there, 0).sum(-1) / there.sum(-1)).mean()
        return {"cross_entropy": -(1 - self.smoothing) * right - self.smoothing * even}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"cross_entropy": len(batch[Field.LABELS])}
