"""Knowledge transfer of one layer after the other (Sun et al. 2020, MobileBERT §3.3 and §3.4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.networks.shape import NetworkShape
from pipelines.parts.objectives import Batch, Companion, Companions, Objective, TrainingStep
from pipelines.parts.objectives.layer_differences import difference
from pipelines.parts.objectives.match_attention import MatchAttention, seen_pairs
from pipelines.parts.objectives.real_tokens import real_tokens
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor
    from transformers import PreTrainedModel

ATTENTION = MatchAttention(compare="distributions")


class LayerByLayer(Objective, name="layer_by_layer"):
    """Mean squared error of the states of one layer at a time (feature map transfer, eq. 1) and the relative
    entropy of its attention (attention transfer, eq. 2), each against the teacher's layer of the same number.

    Layer l of L is the one that learns in the l-th of L equal parts of the stage, its embeddings with the first; the
    strategy `progressive_transfer` trains the same one. Student and teacher have as many layers, heads, and elements of
    a state.
    """

    paper = "arXiv:2004.02984"
    may_read = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, Field.VISIBLE, Field.DOCUMENT_STARTS})
    needs_signals = frozenset({Signal.HIDDEN_STATES, Signal.ATTENTION_SCORES})
    needs_teacher = True

    attention: float = Option(1.0, ge=0)
    """Factor of the attention's loss."""

    def companions(self, make: Companions) -> dict[str, Companion]:
        return {"teacher": make.teacher()}

    def unfit(self, student: NetworkShape, teacher: NetworkShape) -> str | None:
        for name, own, other in zip(("layers", "elements of a state", "heads"), student, teacher, strict=True):
            if None not in (own, other) and own != other:
                return (
                    f"the student has {own} {name} and its teacher {other}, and each layer learns from the one of its "
                    "number; give both the same, or use match_layers, which maps one to the other"
                )
        return None

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        teacher = step.companion_signals("teacher")
        own, other = (cast("Sequence[Tensor]", one[Signal.HIDDEN_STATES]) for one in (step.signals, teacher))
        layer = current_layer(step.progress, len(own) - 1)
        mask = real_tokens(step.batch)
        learning = (0, layer) if layer == 1 else (layer,)
        states = [difference("mean_square", [own[one].float()], [other[one].float()], mask) for one in learning]
        scores = [
            cast("Sequence[Tensor]", one[Signal.ATTENTION_SCORES])[layer - 1].float() for one in (step.signals, teacher)
        ]
        attention = ATTENTION.difference(scores[0], scores[1], seen_pairs(step.batch).unsqueeze(1))
        return {"layer_by_layer": sum(states[1:], states[0]) + self.attention * attention}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"layer_by_layer": int(real_tokens(batch).sum())}


def current_layer(progress: float, layers: int) -> int:
    """The layer, from 1 to `layers`, that learns when `progress` of the stage's steps are done."""
    return min(layers, int(progress * layers + 1e-9) + 1)
