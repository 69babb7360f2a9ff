"""Soft targets: the student learns the teacher's distribution (Hinton, Vinyals & Dean 2015, §2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class MatchLogits(Objective, name="match_logits"):
    """Cross-entropy between softened distributions, times temperature² so that its gradient keeps its size (§2.1)."""

    paper = "arXiv:1503.02531"
    needs_signals = frozenset({Signal.LOGITS})
    needs_teacher = True

    temperature: float = Option(2.0, gt=0)
    """Divides both networks' scores: the larger, the more the unlikely classes count."""

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import log_softmax, softmax

        student = cast("Tensor", step.signals[Signal.LOGITS]).float() / self.temperature
        teacher = cast("Tensor", step.companion("teacher")[Signal.LOGITS]).float() / self.temperature
        target, said = softmax(teacher, -1), log_softmax(student, -1)
        # a choice that a question does not have is −∞ for both: it has no part in the sum
        cross = -torch.where(target > 0, target * said, torch.zeros_like(said)).sum(-1).mean()
        return {"match_logits": cross * self.temperature**2}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"match_logits": len(batch.get(Field.CHOICES, batch[Field.INPUT_IDS]))}
