"""Distillation of one teacher into sub-networks of several widths at once (Hou et al. 2020, DynaBERT §2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.networks.shape import NetworkShape
from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.parts.objectives.layer_differences import difference
from pipelines.parts.objectives.real_tokens import real_tokens
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

WIDTH_LOGITS = Signal.of_head("width_logits")
WIDTH_STATES = Signal.of_head("width_states")


class MatchWidths(Objective, name="match_widths"):
    """λ₁ · SCE(y, ŷ) + λ₂ · (MSE(E, Ê) + Σ MSE(H, Ĥ)), mean over the widths: every sub-network answers what its teacher
    does, with the teacher's states.

    SCE is the cross-entropy of the teacher's distribution and the sub-network's, E the embeddings, H the states after
    each layer, over the tokens that are not padding. λ₁ is 1; both networks have the same layers and width of states.
    """

    paper = "arXiv:2004.04037"
    may_read = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    needs_signals = frozenset({WIDTH_LOGITS, WIDTH_STATES})
    needs_teacher = True

    states: float = Option(0.1, ge=0)
    """λ₂, the factor of the embeddings and states; 0 leaves them out."""

    @property
    def required_signals(self) -> frozenset[Signal]:
        return self.needs_signals if self.states else frozenset({WIDTH_LOGITS})

    @property
    def teacher_signals(self) -> frozenset[Signal]:
        """What it reads of the teacher, which has one width."""
        return frozenset({Signal.LOGITS, Signal.HIDDEN_STATES} if self.states else {Signal.LOGITS})

    def unfit(self, student: NetworkShape, teacher: NetworkShape) -> str | None:
        pairs = {"layers": (student.layers, teacher.layers), "elements of a state": (student.width, teacher.width)}
        for what, (own, other) in pairs.items():
            if self.states and own is not None and other is not None and own != other:
                return (
                    f"states are compared with those of the same layer of the teacher, and {own} {what} are not "
                    f"{other}; let the stage start from its teacher, or set states: 0"
                )
        return None

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch

        teacher = step.companion_signals("teacher", self.teacher_signals)
        target = cast("Tensor", teacher[Signal.LOGITS]).float().softmax(-1)
        logits = cast("Tensor", step.signals[WIDTH_LOGITS]).float()
        terms = {"width_logits": -(target * logits.log_softmax(-1)).sum(-1).mean()}
        if self.states:
            mask, goals = real_tokens(step.batch), cast("tuple[Tensor, ...]", teacher[Signal.HIDDEN_STATES])
            by_layer = cast("tuple[Tensor, ...]", step.signals[WIDTH_STATES])
            distances = [
                difference("mean_square", [state], [goal.float()], mask)
                for states, goal in zip(by_layer, goals, strict=True)
                for state in states.float()
            ]
            terms["width_states"] = self.states * torch.stack(distances).sum() / len(by_layer[0])
        return terms

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        tokens = real_tokens(batch)
        return {"width_logits": len(tokens)} | ({"width_states": int(tokens.sum())} if self.states else {})
