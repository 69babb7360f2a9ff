"""In-batch contrastive learning of passages (Giorgi et al. 2021, DeCLUTR §3.2; InfoNCE, van den Oord et al. 2018, §2.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.objectives import Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor


class Contrastive(Objective, name="contrastive"):
    """A row's vector must be nearer, in cosine, to its partner's than to that of any row of the other half.

    Mean over all rows of −log softmax(cos(v, ·) / temperature)[partner], where · runs over the partners of all rows in
    the same half of the batch. Added to masked language modelling it teaches a small encoder within minutes what
    masked tokens alone do not (docs/journal.md).
    """

    paper = "arXiv:2006.03659"
    needs_fields = frozenset({Field.PARTNER})
    needs_signals = frozenset({Signal.POOLED})

    temperature: float = Option(0.05, gt=0)

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import cross_entropy, normalize

        vectors = normalize(cast("Tensor", step.signals[Signal.POOLED]).float(), dim=-1)
        half = len(vectors) // 2
        partner = step.batch[Field.PARTNER]
        similarity = vectors[:half] @ vectors[partner[:half]].T / self.temperature
        target = torch.arange(half, device=vectors.device)
        return {"contrastive": (cross_entropy(similarity, target) + cross_entropy(similarity.T, target)) / 2}
