"""Language modelling from left to right (Radford et al. 2018, eq. 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.objectives import Objective, TrainingStep
from pipelines.vocabulary import Field, Signal

if TYPE_CHECKING:
    from torch import Tensor


class CausalLM(Objective, name="causal_lm"):
    """Cross-entropy of the token that follows each position, mean over the batch's tokens but the first of each row.

    Beside a classification loss it is the auxiliary objective of Radford et al. 2018, §3.2, with `weight: 0.5`. Padding is
    never a target. `causal_lm`, in nats a token.
    """

    paper = "Radford et al. 2018"
    needs_signals = frozenset({Signal.NEXT_LOGITS})

    specials: bool = True
    """Whether the tokens that frame a text (start, separator, end) are targets too."""

    def loss(self, step: TrainingStep) -> dict[str, Tensor]:
        import torch

        from pipelines.networks.vocabulary_loss import IGNORED, vocabulary_cross_entropy

        ids = cast("Tensor", step.batch[Field.INPUT_IDS])
        left_out = torch.zeros_like(ids, dtype=torch.bool)
        if Field.ATTENTION_MASK in step.batch:
            left_out |= step.batch[Field.ATTENTION_MASK] == 0
        if not self.specials:
            config = step.network.config
            names = ("bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id")
            known = [value for name in names if isinstance(value := getattr(config, name, None), int)]
            left_out |= torch.isin(ids, ids.new_tensor(known))
        targets = torch.full_like(ids, IGNORED)
        targets[..., :-1] = ids.masked_fill(left_out, IGNORED)[..., 1:]
        return {"causal_lm": vocabulary_cross_entropy(step.signals[Signal.NEXT_LOGITS], targets)}
