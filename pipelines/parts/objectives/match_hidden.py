"""Distillation of hidden states: the student's layers match selected layers of the teacher (Jiao et al. 2019, TinyBERT
§3.1, eq. 8; Sun et al. 2019, PKD §3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.parts.objectives.real_tokens import real_tokens
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor, nn
    from transformers import PretrainedConfig, PreTrainedModel


class MatchHidden(Objective, name="match_hidden"):
    """Mean squared error between hidden states over the tokens that are not padding, mean over the student's layers.

    Student layer i (0 is the embeddings) matches teacher layer i · (teacher layers / student layers), the uniform map
    of TinyBERT §4.1. Where the student is narrower or wider than its teacher, learned projections map its states to
    the teacher's width: W_h of eq. 8 for all layers, W_e of eq. 9 for the embeddings.
    """

    paper = "arXiv:1909.10351"
    may_read = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    needs_signals = frozenset({Signal.HIDDEN_STATES})
    needs_teacher = True

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def build(self, student: PretrainedConfig, teacher: PretrainedConfig | None) -> nn.Module | None:
        from pipelines.networks.state_projection import StateProjection

        if teacher is None or student.hidden_size == teacher.hidden_size:
            return None
        return StateProjection(student.hidden_size, teacher.hidden_size)

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch

        student = cast("Sequence[Tensor]", step.signals[Signal.HIDDEN_STATES])
        if (projection := step.modules.get(self.name)) is not None:
            student = projection(student)
        teacher = cast("tuple[Tensor, ...]", step.companion_signals("teacher")[Signal.HIDDEN_STATES])
        stride = (len(teacher) - 1) / (len(student) - 1)
        mask = real_tokens(step.batch).unsqueeze(-1)
        count = mask.sum() * student[0].shape[-1]
        terms = [
            ((state.float() - teacher[round(layer * stride)].float()).square() * mask).sum() / count
            for layer, state in enumerate(student)
        ]
        return {"match_hidden": torch.stack(terms).mean()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"match_hidden": int(real_tokens(batch).sum())}
