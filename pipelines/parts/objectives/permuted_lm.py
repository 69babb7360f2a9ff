"""Permutation language modelling (Yang et al. 2019, §2.3, eq. 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class PermutedLM(Objective, name="permuted_lm"):
    """Cross-entropy of each predicted token given those before it in the row's order, mean over predicted tokens.

    The network must hide a token from its own prediction: the logits must come from a query stream. Term:
    `permuted_lm`, in nats per predicted token.
    """

    paper = "arXiv:1906.08237"
    needs_fields = frozenset({Field.PERMUTATION_MASK, Field.TARGET_MAPPING, Field.MASKED_LABELS})
    needs_signals = frozenset({Signal.MASKED_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from pipelines.networks.vocabulary_loss import vocabulary_cross_entropy

        logits = cast("Tensor", step.signals[Signal.MASKED_LOGITS])
        inplace = Signal.MASKED_LOGITS in step.overwritable
        return {"permuted_lm": vocabulary_cross_entropy(logits, step.batch[Field.MASKED_LABELS], inplace=inplace)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"permuted_lm": len(batch[Field.MASKED_LABELS])}
