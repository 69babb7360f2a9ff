"""The true neighbour of a sentence among the sentences of the batch (Logeswaran & Lee 2018, §3, eq. 1 and 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

NEIGHBOURS = Signal.of_head("neighbour_vectors")
"""[B, H]: the vector of the neighbour of each row's sentence."""


class QuickThoughts(Objective, name="quick_thoughts"):
    """Mean over the sentences with a neighbour of −log softmax(f(s) · g(·))[neighbour], over those of the whole batch.

    Inner products, not cosines: all that is to be learned is in the encoders. Zero when no row has a neighbour. Term:
    `quick_thoughts`, in nats per sentence.
    """

    paper = "arXiv:1803.02893"
    needs_fields = frozenset({Field.TARGET_IDS})
    needs_signals = frozenset({Signal.POOLED, NEIGHBOURS})
    compares_rows = True

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import cross_entropy

        own = (step.batch[Field.TARGET_IDS] >= 0).any(1)
        vectors, neighbours = (cast("Tensor", step.signals[name]).float() for name in (Signal.POOLED, NEIGHBOURS))
        first, second = step.all_gather(vectors[own]), step.all_gather(neighbours[own])
        if not len(first):
            return {"quick_thoughts": (vectors.sum() + neighbours.sum()) * 0}
        return {"quick_thoughts": cross_entropy(first @ second.T, torch.arange(len(first), device=first.device))}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"quick_thoughts": 1}
