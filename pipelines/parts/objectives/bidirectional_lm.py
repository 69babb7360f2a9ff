"""Bidirectional language modelling (Peters et al. 2018, §3.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.networks.elmo import ElmoForTwoLanguageModels


class BidirectionalLM(Objective, name="bidirectional_lm"):
    """Negative log-likelihood of each word given those before it, plus that of each word given those after it.

    Terms: `forward_lm` and `backward_lm`, in nats per word, means over the pairs of neighbours in the batch; the loss
    is their sum.
    """

    paper = "arXiv:1802.05365"
    may_read = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK})
    needs_signals = frozenset({Signal.BIDIRECTIONAL_LOGITS, Signal.BIDIRECTIONAL_TARGETS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from pipelines.networks.vocabulary_loss import vocabulary_cross_entropy

        inplace = Signal.BIDIRECTIONAL_LOGITS in step.overwritable
        logits, targets = step.signals[Signal.BIDIRECTIONAL_LOGITS], step.signals[Signal.BIDIRECTIONAL_TARGETS]
        forward, backward = (
            vocabulary_cross_entropy(scores, ids, inplace=inplace) for scores, ids in zip(logits, targets, strict=True)
        )
        return {"forward_lm": forward, "backward_lm": backward}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        pairs = cast("ElmoForTwoLanguageModels", network).count_predictions(
            batch[Field.INPUT_IDS], batch.get(Field.ATTENTION_MASK)
        )
        return {"forward_lm": pairs, "backward_lm": pairs}
