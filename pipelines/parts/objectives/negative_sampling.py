"""Negative sampling: discriminate words from noise (Mikolov et al. 2013, arXiv:1310.4546, eq. 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.networks.word_vectors import WordPredictor


class NegativeSampling(Objective, name="negative_sampling"):
    """−log σ(score of the true word) − Σ log σ(−score of each negative), mean over the batch's predictions."""

    paper = "arXiv:1310.4546"
    needs_fields = frozenset({Field.CONTEXTS})
    needs_signals = frozenset({Signal.NOISE_LOGITS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import softplus

        scores = step.signals[Signal.NOISE_LOGITS].float()
        # −log σ(x) is softplus(−x)
        terms = softplus(-scores[:, 0]) + softplus(scores[:, 1:]).sum(1)
        return {"negative_sampling": terms.mean()}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"negative_sampling": cast("WordPredictor", network).count_predictions(batch[Field.CONTEXTS])}
