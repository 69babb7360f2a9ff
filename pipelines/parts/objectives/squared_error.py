"""Regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class SquaredError(Objective, name="squared_error"):
    """Squared difference between the score given and the right one, mean over the batch, in the dataset's units squared."""

    needs_fields = frozenset({Field.SCORES})
    needs_signals = frozenset({Signal.SCORE})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import mse_loss

        score = cast("Tensor", step.signals[Signal.SCORE]).float()
        return {"squared_error": mse_loss(score, step.batch[Field.SCORES])}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"squared_error": len(batch[Field.SCORES])}
