"""Cross-entropy of the classifiers after all layers (Zhou et al. 2020, PABEE §3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

EXIT_LOGITS = Signal.of_head("exit_logits")


class ExitCrossEntropy(Objective, name="exit_cross_entropy"):
    """Σ j · L_j / Σ j over the layers j = 1, 2, …, with L_j the cross-entropy of the correct class after layer j, mean
    over the batch: layers that compute more count for more."""

    paper = "arXiv:2006.04152"
    needs_fields = frozenset({Field.LABELS})
    needs_signals = frozenset({EXIT_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch

        logits = cast("Tensor", step.signals[EXIT_LOGITS]).float()
        labels = step.batch[Field.LABELS].expand(len(logits), -1).unsqueeze(-1)
        of_layers = -logits.log_softmax(-1).gather(-1, labels).mean((1, 2))
        weights = torch.arange(1, len(logits) + 1, device=logits.device, dtype=logits.dtype)
        return {"exit_cross_entropy": (weights * of_layers).sum() / weights.sum()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"exit_cross_entropy": len(batch[Field.LABELS])}
