"""Tagging with a linear-chain conditional random field."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class Crf(Objective, name="crf"):
    """Exact negative log-likelihood of the gold tag sequence of each sentence (Lample et al. 2016, §2.2).

    Words are represented by their first tokens. In nats per word of the batch, comparable with `tag_cross_entropy`.
    """

    paper = "arXiv:1603.01360"
    needs_fields = frozenset({Field.TAG_LABELS})
    needs_signals = frozenset({Signal.TAG_LOGITS, Signal.TAG_TRANSITIONS})

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from pipelines.networks.crf import chain_score, log_partition

        emissions = cast("Tensor", step.signals[Signal.TAG_LOGITS])
        transitions = cast("Tensor", step.signals[Signal.TAG_TRANSITIONS])
        # sums over a whole sentence lose too much in half precision
        emissions, transitions = (x.float() if x.dtype.itemsize < 4 else x for x in (emissions, transitions))
        labels = cast("Tensor", step.batch[Field.TAG_LABELS])
        lengths = (labels >= 0).sum(1)
        words = max(1, int(lengths.max()))
        first_tokens = (labels < 0).int().argsort(dim=1, stable=True)[:, :words]
        chains = labels.gather(1, first_tokens).clamp(min=0)
        emissions = emissions.gather(1, first_tokens.unsqueeze(2).expand(-1, -1, emissions.shape[-1]))
        losses = log_partition(emissions, transitions, lengths) - chain_score(emissions, transitions, chains, lengths)
        return {"crf": losses.sum() / lengths.sum().clamp(min=1)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"crf": int((batch[Field.TAG_LABELS] >= 0).sum())}
