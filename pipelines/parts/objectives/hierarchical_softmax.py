"""Hierarchical softmax: the path to a word through a binary tree (Morin & Bengio 2005; Mikolov et al. 2013,
arXiv:1310.4546, eq. 3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.networks.word_vectors import WordPredictor


class HierarchicalSoftmax(Objective, name="hierarchical_softmax"):
    """Negative log-probability of all turns on the path to the word, mean over the batch's predictions."""

    paper = "arXiv:1310.4546"
    needs_fields = frozenset({Field.CONTEXTS})
    needs_signals = frozenset({Signal.PATH_LOGITS, Signal.PATH_TURNS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import binary_cross_entropy_with_logits

        scores, turns = step.signals[Signal.PATH_LOGITS].float(), step.signals[Signal.PATH_TURNS]
        on_path = (turns >= 0).to(scores.dtype)
        # the probability of turning right is σ(score)
        total = binary_cross_entropy_with_logits(scores, turns.clamp(min=0).to(scores.dtype), on_path, reduction="sum")
        return {"hierarchical_softmax": total / len(scores)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"hierarchical_softmax": cast("WordPredictor", network).count_predictions(batch[Field.CONTEXTS])}
