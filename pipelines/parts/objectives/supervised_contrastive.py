"""Supervised contrastive learning for fine-tuning (Gunel et al. 2021, §3; Khosla et al. 2020, eq. 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class SupervisedContrastive(Objective, name="supervised_contrastive"):
    """A text's vector must be closer, in cosine, to those of its own class in the batch than to the others.

    Mean over texts i with another text of their class in the batch of −1/|P(i)| Σ over p in P(i) of log softmax over j
    ≠ i of cos(vᵢ, vⱼ) / temperature at p, where P(i) are the other texts of the class of i. Zero when no two texts
    share a class. Combined with cross-entropy with weights that sum to one (eq. 1).
    """

    paper = "arXiv:2011.01403"
    needs_fields = frozenset({Field.LABELS})
    needs_signals = frozenset({Signal.POOLED})
    compares_rows = True

    temperature: float = Option(0.3, gt=0)
    """Divisor of the cosines: the smaller, the more the nearest texts count (§4.2: 0.3)."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import normalize

        vectors = step.all_gather(normalize(step.signals[Signal.POOLED].float(), dim=-1))
        labels = step.all_gather(step.batch[Field.LABELS])
        itself = torch.eye(len(labels), dtype=torch.bool, device=vectors.device)
        log_probabilities = (vectors @ vectors.T / self.temperature).masked_fill(itself, -torch.inf).log_softmax(-1)
        positives = (labels[:, None] == labels[None, :]) & ~itself
        counts = positives.sum(1)
        if not bool(counts.any()):
            return {"supervised_contrastive": vectors.sum() * 0}
        means = log_probabilities.masked_fill(~positives, 0.0).sum(1)[counts > 0] / counts[counts > 0]
        return {"supervised_contrastive": -means.mean()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"supervised_contrastive": 1}
