"""Part of speech and polarity of masked words (Ke et al. 2020, SentiLARE §3.3)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

TERMS = {
    "masked_part_of_speech": (
        Field.of_masked_positions("masked_part_of_speech"),
        Signal.of_head("part_of_speech_logits"),
    ),
    "masked_polarity": (Field.of_masked_positions("masked_polarity"), Signal.of_head("polarity_logits")),
}
"""Name of a term → its labels and its logits."""
UNKNOWN = 0
"""Label of a token of which nothing is known."""


class LinguisticMaskedLM(Objective, name="linguistic_masked_lm"):
    """Cross-entropy of the part of speech, and that of the polarity, of every masked token; beside `masked_lm`, which
    is that of the word.

    In nats: means over the masked tokens whose label is known; 0 where none is.
    """

    paper = "arXiv:1911.02493"
    needs_fields = frozenset(labels for labels, _ in TERMS.values())
    needs_signals = frozenset(logits for _, logits in TERMS.values())

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from torch.nn.functional import cross_entropy

        losses = {}
        for name, (field, signal) in TERMS.items():
            logits, labels = cast("Tensor", step.signals[signal]), step.batch[field]
            total = cross_entropy(logits.float(), labels, ignore_index=UNKNOWN, reduction="sum")
            losses[name] = total / (labels != UNKNOWN).sum().clamp(min=1)
        return losses

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {name: int((batch[field] != UNKNOWN).sum()) for name, (field, _) in TERMS.items()}
