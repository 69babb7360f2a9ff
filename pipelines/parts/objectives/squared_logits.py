"""Distillation of logits by their squared error (Ba & Caruana 2014; Tang et al. 2019, §3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class SquaredLogits(Objective, name="squared_logits"):
    """‖z − ẑ‖², the squared distance between the logits of a student and those of its teacher, mean over the batch."""

    paper = "arXiv:1903.12136"
    may_read = frozenset({Field.INPUT_IDS, Field.CHOICES})
    needs_signals = frozenset({Signal.LOGITS})
    needs_teacher = True

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch

        student = cast("Tensor", step.signals[Signal.LOGITS]).float()
        teacher = cast("Tensor", step.companion_signals("teacher")[Signal.LOGITS]).float()
        # padding of a question with fewer choices is −∞ for both networks
        distance = torch.where(teacher.isfinite(), student - teacher, torch.zeros_like(teacher))
        return {"squared_logits": distance.square().sum(-1).mean()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"squared_logits": len(batch.get(Field.CHOICES, batch[Field.INPUT_IDS]))}
