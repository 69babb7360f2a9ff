"""Causal language modelling (Radford et al. 2018, eq. 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class CausalLM(Objective, name="causal_lm"):
    """Cross-entropy of the token after each position, mean over the batch's tokens except the first of each row.

    Where the documents of a row do not attend to each other, the first token of each is excluded too; padding is never
    a target. Combined with a classification loss it is the auxiliary objective of Radford et al. 2018, §3.2, with
    `weight: 0.5`. Term: `causal_lm`, in nats per token.
    """

    paper = "Radford et al. 2018"
    may_read = frozenset({Field.INPUT_IDS, Field.ATTENTION_MASK, Field.DOCUMENT_STARTS})
    needs_signals = frozenset({Signal.NEXT_LOGITS})

    specials: bool = True
    """Whether special tokens (start, separator, end) are targets too."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from pipelines.networks.vocabulary_loss import vocabulary_cross_entropy

        targets = self._targets(step.batch, step.network)
        inplace = Signal.NEXT_LOGITS in step.overwritable
        return {"causal_lm": vocabulary_cross_entropy(step.signals[Signal.NEXT_LOGITS], targets, inplace=inplace)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"causal_lm": int((self._targets(batch, network) >= 0).sum())}

    def _targets(self, batch: Batch, network: PreTrainedModel) -> Tensor:
        """int64 [B, L]: the token after each position, IGNORED where none is to be predicted."""
        import torch

        from pipelines.networks.vocabulary_loss import IGNORED

        ids = cast("Tensor", batch[Field.INPUT_IDS])
        excluded = torch.zeros_like(ids, dtype=torch.bool)
        if Field.ATTENTION_MASK in batch:
            excluded |= batch[Field.ATTENTION_MASK] == 0
        if Field.DOCUMENT_STARTS in batch:
            excluded |= batch[Field.DOCUMENT_STARTS] != 0
        if not self.specials:
            names = ("bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id")
            special = [value for name in names if isinstance(value := getattr(network.config, name, None), int)]
            excluded |= torch.isin(ids, ids.new_tensor(special))
        targets = torch.full_like(ids, IGNORED)
        targets[..., :-1] = ids.masked_fill(excluded, IGNORED)[..., 1:]
        return targets
