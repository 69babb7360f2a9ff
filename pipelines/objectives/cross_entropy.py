"""Classification."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.objectives import Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor


class CrossEntropy(Objective, name="cross_entropy"):
    """Cross-entropy of the right class, mean over the batch."""

    needs_fields = frozenset({Field.LABELS})
    needs_signals = frozenset({Signal.LOGITS})

    smoothing: float = Option(0.0, ge=0, lt=1)
    """Label smoothing (Szegedy et al. 2016, §7)."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import cross_entropy

        logits = cast("Tensor", step.signals[Signal.LOGITS]).float()
        return {"cross_entropy": cross_entropy(logits, step.batch[Field.LABELS], label_smoothing=self.smoothing)}
