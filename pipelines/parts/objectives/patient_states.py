"""Patient knowledge distillation: normalised states of intermediate layers (Sun et al. 2019, PKD §3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Self, cast

from pipelines.networks.shape import NetworkShape
from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from transformers import PreTrainedModel


class PatientStates(Objective, name="patient_states"):
    """Squared distance between a text's states in student and teacher, each of length 1 (eq. 7); mean over the batch
    and the student's layers below the top, which learns from the logits.

    Layer i of a student of m layers matches, of a teacher of n: `skip`: layer i · n / m; `last`: layer n − m + i. The
    paper sums over layers; the mean lets one weight serve students of any depth.
    """

    paper = "arXiv:1908.09355"
    may_read = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    needs_signals = frozenset({Signal.HIDDEN_STATES})
    needs_teacher = True

    layers: Literal["skip", "last"] = "skip"
    """Layers of the teacher: evenly spaced ones, or the last ones below the top."""
    top: bool = False
    """Whether the top layer learns from that of the teacher too."""
    state: Literal["first", "mean"] = "first"
    """State of a text in a layer: that of its first token, as in the paper, or the mean over its tokens, for heads that
    pool so."""

    def unfit(self, student: NetworkShape, teacher: NetworkShape) -> str | None:
        if None not in (student.width, teacher.width) and student.width != teacher.width:
            return (
                f"the student's states have {student.width} elements and its teacher's {teacher.width}, and both are "
                "compared as they are; give the backbone the same width, or use match_hidden, which learns a projection"
            )
        if student.layers == 1 and not self.top:
            return (
                "the student has a single layer, and the layers below the top are those that learn; keep two or more, "
                "or set top: true"
            )
        if None not in (student.layers, teacher.layers) and cast("int", student.layers) > cast("int", teacher.layers):
            return (
                f"the student has {student.layers} layers and its teacher {teacher.layers}, so that some match none; "
                "give the student no more layers than its teacher has"
            )
        return None

    def tiny(self) -> Self:
        return self.model_copy(update={"top": True})

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch

        student = cast("Sequence[Tensor]", step.signals[Signal.HIDDEN_STATES])
        teacher = cast("Sequence[Tensor]", step.companion_signals("teacher")[Signal.HIDDEN_STATES])
        terms = [
            (self._text(student[own], step.batch) - self._text(teacher[other], step.batch)).square().sum(-1).mean()
            for own, other in self.matches(len(student) - 1, len(teacher) - 1)
        ]
        return {"patient_states": torch.stack(terms).mean()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"patient_states": len(batch[Field.INPUT_IDS])}

    def matches(self, student: int, teacher: int) -> list[tuple[int, int]]:
        """Pairs of layers of a student and a teacher with so many, from 1: the student's, the teacher's."""
        own = range(1, student + self.top)
        if self.layers == "last":
            return [(layer, teacher - student + layer) for layer in own]
        return [(layer, round(layer * teacher / student)) for layer in own]

    def _text(self, states: Tensor, batch: Batch) -> Tensor:
        """[B, H]: the state of each text in one layer, of length 1."""
        from torch.nn.functional import normalize

        states = states.float()
        mask: Tensor | None = batch.get(Field.ATTENTION_MASK)
        if self.state == "first":
            text = states[:, 0]
        elif mask is None:
            text = states.mean(1)
        else:
            text = (states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)
        return normalize(text, dim=-1)
