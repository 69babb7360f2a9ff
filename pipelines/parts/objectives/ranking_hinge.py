"""Ranking: what was written is to score higher, by a margin, than what was not (Collobert & Weston 2008, §4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class RankingHinge(Objective, name="ranking_hinge"):
    """Σ over negatives max(0, margin − score of the true word + score of the negative), mean over the windows."""

    paper = "arXiv:1103.0398"
    needs_fields = frozenset({Field.CENTERS})
    needs_signals = frozenset({Signal.NOISE_LOGITS})

    margin: float = Option(1.0, gt=0)
    """Difference of scores from which on a negative counts no more."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        scores = step.signals[Signal.NOISE_LOGITS].float()
        below = self.margin - scores[:, :1] + scores[:, 1:]
        return {"ranking_hinge": below.clamp(min=0).sum() / max(1, len(scores))}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"ranking_hinge": len(batch[Field.CENTERS])}
