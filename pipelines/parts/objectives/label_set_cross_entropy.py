"""Multi-label classification."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

LABEL_SETS = Field.of_rows("label_sets")
LABEL_SET_LOGITS = Signal.of_head("label_set_logits")


class LabelSetCrossEntropy(Objective, name="label_set_cross_entropy"):
    """Binary cross-entropy of each label of each text, in nats: the mean over labels and texts (as
    BertForSequenceClassification with problem_type multi_label_classification)."""

    paper = "arXiv:1906.02124"
    needs_fields = frozenset({LABEL_SETS})
    needs_signals = frozenset({LABEL_SET_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import binary_cross_entropy_with_logits

        logits = cast("Tensor", step.signals[LABEL_SET_LOGITS]).float()
        return {"label_set_cross_entropy": binary_cross_entropy_with_logits(logits, step.batch[LABEL_SETS])}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"label_set_cross_entropy": len(batch[LABEL_SETS])}
