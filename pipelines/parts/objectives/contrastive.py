"""In-batch contrastive learning of passages (Giorgi et al. 2021, DeCLUTR §3.2; InfoNCE, van den Oord et al. 2018,
§2.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class Contrastive(Objective, name="contrastive"):
    """InfoNCE: a row's vector must be closer, in cosine, to its partner's than to any other of the other half.

    Mean over rows with a partner of −log softmax(cos(v, ·) / temperature)[partner], where · runs over the rows of the
    other half of the batch that have partners. Added to masked language modelling it teaches a small encoder within
    minutes what masked tokens alone do not (docs/journal.md). Zero when no row has a partner.
    """

    paper = "arXiv:2006.03659"
    needs_fields = frozenset({Field.PARTNER})
    needs_signals = frozenset({Signal.POOLED})
    compares_rows = True

    temperature: float = Option(0.05, gt=0)
    """Divisor of the cosines: the smaller, the more the nearest rows count."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import cross_entropy, normalize

        vectors = normalize(cast("Tensor", step.signals[Signal.POOLED]).float(), dim=-1)
        partner = step.batch[Field.PARTNER]
        own = torch.nonzero(partner[: len(partner) // 2] >= 0).squeeze(1)
        first, second = step.all_gather(vectors[own]), step.all_gather(vectors[partner[own]])
        if not len(first):
            return {"contrastive": vectors.sum() * 0}
        similarity = first @ second.T / self.temperature
        target = torch.arange(len(first), device=vectors.device)
        return {"contrastive": (cross_entropy(similarity, target) + cross_entropy(similarity.T, target)) / 2}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"contrastive": 1}
