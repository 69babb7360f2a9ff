"""Knowledge embedding: facts against corrupted facts (Wang et al. 2019, KEPLER §3.2, after Sun et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class KnowledgeEmbedding(Objective, name="knowledge_embedding"):
    """−log σ(γ − d) − Σ (1/n) log σ(d′ᵢ − γ), d the distance of the fact and d′ᵢ those of n facts with another tail.

    The scores of the choices are −d. The mean over the facts of the batch, in nats.
    """

    paper = "arXiv:1911.06136"
    needs_fields = frozenset({Field.LABELS})
    needs_signals = frozenset({Signal.LOGITS})

    margin: float = Option(4.0, gt=0)
    """γ, in the unit of the distance: below it a fact counts as true."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch
        from torch.nn.functional import softplus

        scores, labels = cast("Tensor", step.signals[Signal.LOGITS]).float(), step.batch[Field.LABELS]
        # −log σ(x) is softplus(−x); a choice that stands for none has the score −inf
        true = torch.zeros_like(scores, dtype=torch.bool).scatter(-1, labels.unsqueeze(-1), True)
        false = scores.isfinite() & ~true
        right = softplus(-(self.margin + scores.gather(-1, labels.unsqueeze(-1)).squeeze(-1)))
        wrong = softplus((self.margin + scores).masked_fill(~false, 0.0)).masked_fill(~false, 0.0)
        return {"knowledge_embedding": (right + wrong.sum(-1) / false.sum(-1).clamp(min=1)).mean()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"knowledge_embedding": len(batch[Field.LABELS])}
