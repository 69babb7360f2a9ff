"""Regression."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class SquaredError(Objective, name="squared_error"):
    """Mean squared error of the predicted scores over the batch, in squared units of the dataset."""

    needs_fields = frozenset({Field.SCORES})
    needs_signals = frozenset({Signal.SCORE})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import mse_loss

        score = cast("Tensor", step.signals[Signal.SCORE]).float()
        return {"squared_error": mse_loss(score, step.batch[Field.SCORES])}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"squared_error": len(batch[Field.SCORES])}
