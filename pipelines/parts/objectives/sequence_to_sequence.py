"""Sequence-to-sequence learning (Sutskever et al. 2014; Raffel et al. 2019, §2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class SequenceToSequence(Objective, name="sequence_to_sequence"):
    """Cross-entropy of each target token given the source and the earlier target tokens.

    Mean over the batch's target tokens. Term: `sequence_to_sequence`, in nats per token.
    """

    paper = "arXiv:1910.10683"
    needs_fields = frozenset({Field.TARGET_IDS})
    needs_signals = frozenset({Signal.TARGET_LOGITS})

    smoothing: float = Option(0.0, ge=0, lt=1)
    """Label smoothing: share of each target's probability that is spread evenly over the vocabulary (Szegedy et al.
    2016, §7)."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import cross_entropy

        from pipelines.networks.vocabulary_loss import vocabulary_cross_entropy

        logits = cast("Tensor", step.signals[Signal.TARGET_LOGITS])
        targets = cast("Tensor", step.batch[Field.TARGET_IDS])
        if not self.smoothing:
            inplace = Signal.TARGET_LOGITS in step.overwritable
            return {"sequence_to_sequence": vocabulary_cross_entropy(logits, targets, inplace=inplace)}
        rows = logits.flatten(0, 1).float()
        return {"sequence_to_sequence": cross_entropy(rows, targets.flatten(), label_smoothing=self.smoothing)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"sequence_to_sequence": int((batch[Field.TARGET_IDS] >= 0).sum())}
