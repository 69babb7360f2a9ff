"""Next sentence prediction (Devlin et al. 2018, §3.1, task 2), or the order of sentences (Lan et al. 2019, §3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class NextSentenceObjective(Objective, name="next_sentence"):
    """Cross-entropy of whether the second segment of a row continues the first, mean over the rows that are pairs.

    What a wrong second segment is, another document's or the first one's predecessor, is up to the corruption. Zero
    when no row is a pair.
    """

    paper = "arXiv:1810.04805"
    needs_fields = frozenset({Field.SEGMENT_LABELS})
    needs_signals = frozenset({Signal.SEGMENT_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import cross_entropy

        logits, labels = cast("Tensor", step.signals[Signal.SEGMENT_LOGITS]), step.batch[Field.SEGMENT_LABELS]
        # the labels of rows that are no pairs are torch's ignored index
        total = cross_entropy(logits.float(), labels, reduction="sum")
        return {"next_sentence": total / (labels >= 0).sum().clamp(min=1)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"next_sentence": int((batch[Field.SEGMENT_LABELS] >= 0).sum())}
