"""Classes of the rows of plain text (Sun et al. 2019, ERNIE 2.0 §4.2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

ROW_LABELS = Field.of_rows("row_labels")
ROW_LOGITS = Signal.of_head("row_logits")


class RowClassesObjective(Objective, name="row_classes"):
    """Cross-entropy of the class of each row, in nats: the mean over the rows that have one; 0 when none has."""

    paper = "arXiv:1907.12412"
    needs_fields = frozenset({ROW_LABELS})
    needs_signals = frozenset({ROW_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import cross_entropy

        logits, labels = cast("Tensor", step.signals[ROW_LOGITS]), step.batch[ROW_LABELS]
        # the labels of rows without a class are torch's ignored index
        total = cross_entropy(logits.float(), labels, reduction="sum")
        return {"row_classes": total / (labels >= 0).sum().clamp(min=1)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"row_classes": int((batch[ROW_LABELS] >= 0).sum())}
