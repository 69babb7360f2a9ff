"""Tagging, each word independently."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class TagCrossEntropy(Objective, name="tag_cross_entropy"):
    """Cross-entropy of the correct tag of every word, predicted at its first token (Devlin et al. 2018, §5.3).

    In nats: the mean over the words of the batch.
    """

    paper = "arXiv:1810.04805"
    needs_fields = frozenset({Field.TAG_LABELS})
    needs_signals = frozenset({Signal.TAG_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import cross_entropy

        logits, labels = cast("Tensor", step.signals[Signal.TAG_LOGITS]), step.batch[Field.TAG_LABELS]
        total = cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), reduction="sum")
        # a batch without labelled words has loss 0, not 0 / 0
        return {"tag_cross_entropy": total / (labels >= 0).sum().clamp(min=1)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"tag_cross_entropy": int((batch[Field.TAG_LABELS] >= 0).sum())}
