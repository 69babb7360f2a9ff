"""The direction of hidden states, learned from a teacher (Sanh et al. 2019, DistilBERT §2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.networks.shape import NetworkShape
from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.parts.objectives.real_tokens import real_tokens
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from transformers import PreTrainedModel


class CosineHidden(Objective, name="cosine_hidden"):
    """1 − cosine between the top hidden states of student and teacher, mean over the tokens that are not padding.

    The two have states of the same width: another has no direction in common.
    """

    paper = "arXiv:1910.01108"
    may_read = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    needs_signals = frozenset({Signal.HIDDEN_STATES})
    needs_teacher = True

    def unfit(self, student: NetworkShape, teacher: NetworkShape) -> str | None:
        if None in (student.width, teacher.width) or student.width == teacher.width:
            return None
        return (
            f"the student's states have {student.width} elements and its teacher's {teacher.width}, between which "
            "there is no cosine; give the backbone the same width, or use match_hidden, which learns a projection"
        )

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import cosine_similarity

        student = cast("Sequence[Tensor]", step.signals[Signal.HIDDEN_STATES])[-1].float()
        teacher = cast("Sequence[Tensor]", step.companion_signals("teacher")[Signal.HIDDEN_STATES])[-1].float()
        mask = real_tokens(step.batch)
        distance = 1 - cosine_similarity(student, teacher, dim=-1)
        return {"cosine_hidden": (distance * mask).sum() / mask.sum()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"cosine_hidden": int(real_tokens(batch).sum())}
