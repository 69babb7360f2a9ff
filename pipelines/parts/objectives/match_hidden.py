"""Distillation of hidden states: the student's layers match selected layers of the teacher (Jiao et al. 2019, TinyBERT
§3.1, eq. 8; Sun et al. 2019, PKD §3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class MatchHidden(Objective, name="match_hidden"):
    """Mean squared error between hidden states over the tokens that are not padding, mean over the student's layers.

    Student layer i (0 is the embeddings) matches teacher layer i · (teacher layers / student layers), the uniform map
    of TinyBERT §4.1. Both must have the same hidden size.
    """

    paper = "arXiv:1909.10351"
    needs_signals = frozenset({Signal.HIDDEN_STATES})
    needs_teacher = True

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch

        student = cast("tuple[Tensor, ...]", step.signals[Signal.HIDDEN_STATES])
        teacher = cast("tuple[Tensor, ...]", step.companion_signals("teacher")[Signal.HIDDEN_STATES])
        stride = (len(teacher) - 1) / (len(student) - 1)
        mask = step.batch[Field.ATTENTION_MASK].unsqueeze(-1)
        count = mask.sum() * student[0].shape[-1]
        terms = [
            ((state.float() - teacher[round(layer * stride)].float()).square() * mask).sum() / count
            for layer, state in enumerate(student)
        ]
        return {"match_hidden": torch.stack(terms).mean()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"match_hidden": int(batch[Field.ATTENTION_MASK].sum())}
