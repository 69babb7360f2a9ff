"""Knowledge distillation with soft targets (Hinton, Vinyals & Dean 2015, §2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class MatchLogits(Objective, name="match_logits"):
    """Cross-entropy between softened distributions, times temperature² to keep the magnitude of the gradient (§2.1)."""

    paper = "arXiv:1503.02531"
    may_read = frozenset({Field.INPUT_IDS, Field.CHOICES})
    needs_signals = frozenset({Signal.LOGITS})
    needs_teacher = True

    temperature: float = Option(2.0, gt=0)
    """Divisor of both networks' logits: the larger, the more the unlikely classes count."""

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import log_softmax, softmax

        student = cast("Tensor", step.signals[Signal.LOGITS]).float() / self.temperature
        teacher = cast("Tensor", step.companion_signals("teacher")[Signal.LOGITS]).float() / self.temperature
        target, log_probabilities = softmax(teacher, -1), log_softmax(student, -1)
        # padding of a question with fewer choices is −∞ for both networks: exclude it from the sum
        cross = -torch.where(target > 0, target * log_probabilities, torch.zeros_like(log_probabilities)).sum(-1).mean()
        return {"match_logits": cross * self.temperature**2}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"match_logits": len(batch.get(Field.CHOICES, batch[Field.INPUT_IDS]))}
