"""Knowledge distillation with soft targets over the vocabulary, at the masked tokens (Sanh et al. 2019, DistilBERT
§2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class MatchTokenLogits(Objective, name="match_token_logits"):
    """Cross-entropy between softened distributions over the vocabulary, times temperature², mean over masked tokens.

    Tokens to which the teacher gives −∞, because it does not have them, are left out of both distributions.
    """

    paper = "arXiv:1910.01108"
    needs_fields = frozenset({Field.MASKED_LABELS})
    needs_signals = frozenset({Signal.MASKED_LOGITS})
    needs_teacher = True

    temperature: float = Option(2.0, gt=0)
    """Divisor of both networks' logits: the larger, the more the unlikely tokens count."""

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import log_softmax, softmax

        teacher = cast("Tensor", step.companion_signals("teacher")[Signal.MASKED_LOGITS]).float()
        student = cast("Tensor", step.signals[Signal.MASKED_LOGITS]).float()
        unknown = teacher == -torch.inf
        target = softmax(teacher / self.temperature, -1)
        log_probabilities = log_softmax(student.masked_fill(unknown, -torch.inf) / self.temperature, -1)
        cross = -(target * log_probabilities.masked_fill(unknown, 0)).sum(-1).mean()
        return {"match_token_logits": cross * self.temperature**2}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"match_token_logits": len(batch[Field.MASKED_LABELS])}
