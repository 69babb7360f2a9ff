"""Language modelling from left to right (Radford et al. 2018, eq. 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.objectives import Batch, Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class CausalLM(Objective, name="causal_lm"):
    """Cross-entropy of the token that follows each position, mean over the batch's tokens but the first of each row.

    Nor does the first of a document count where those of a row do not see each other, and padding is never a target. Beside a
    classification loss it is the auxiliary objective of Radford et al. 2018, §3.2, with `weight: 0.5`. `causal_lm`, in nats a
    token.
    """

    paper = "Radford et al. 2018"
    needs_signals = frozenset({Signal.NEXT_LOGITS})

    specials: bool = True
    """Whether the tokens that frame a text (start, separator, end) are targets too."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        from pipelines.networks.vocabulary_loss import vocabulary_cross_entropy

        targets = self._targets(step.batch, step.network)
        spent = Signal.NEXT_LOGITS in step.spent
        return {"causal_lm": vocabulary_cross_entropy(step.signals[Signal.NEXT_LOGITS], targets, spent=spent)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"causal_lm": int((self._targets(batch, network) >= 0).sum())}

    def _targets(self, batch: Batch, network: PreTrainedModel) -> Tensor:
        """int64 [B, L]: the token that follows each position, IGNORED where none is to be predicted."""
        import torch

        from pipelines.networks.vocabulary_loss import IGNORED

        ids = cast("Tensor", batch[Field.INPUT_IDS])
        left_out = torch.zeros_like(ids, dtype=torch.bool)
        if Field.ATTENTION_MASK in batch:
            left_out |= batch[Field.ATTENTION_MASK] == 0
        if Field.DOCUMENT_STARTS in batch:
            left_out |= batch[Field.DOCUMENT_STARTS] != 0
        if not self.specials:
            names = ("bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id")
            known = [value for name in names if isinstance(value := getattr(network.config, name, None), int)]
            left_out |= torch.isin(ids, ids.new_tensor(known))
        targets = torch.full_like(ids, IGNORED)
        targets[..., :-1] = ids.masked_fill(left_out, IGNORED)[..., 1:]
        return targets
