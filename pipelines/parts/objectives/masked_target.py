"""Fine-tuning that predicts masked tokens of a target (Dong et al. 2019, UniLM, §2.4 and §3.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pydantic import Field as Option

from pipelines.parts.objectives import Batch, TrainingStep
from pipelines.parts.objectives.sequence_to_sequence import SequenceToSequence
from pipelines.task_families.encoding import IGNORED
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

TARGET_STARTS = Field.of_rows("target_starts")
"""int64 [B]: position in its row of the first token of the target, which is masked there as a whole."""


class MaskedTarget(SequenceToSequence, name="masked_target"):
    """Cross-entropy of the tokens of a target that are masked, given the source and the target to their left, of which
    some are masked too.

    The head writes rows whose target is masked as a whole. In training a share of it, drawn anew for each batch, is
    shown; the held-out loss is that of the whole target, each token of which is then predicted from the source alone.
    Every masked token is the mask token, as it is where a text is written. The end of a target may be masked, so that
    texts learn to end. Mean over the batch's masked tokens. Term: `sequence_to_sequence`, in nats per token.
    """

    paper = "arXiv:1905.03197"
    needs_fields = frozenset({Field.INPUT_IDS, Field.TARGET_IDS, TARGET_STARTS})

    rate: float = Option(0.7, gt=0, le=1)
    """Share of the tokens of each target that is masked: round(rate · tokens), at least one."""

    def rewrite(self, step: TrainingStep) -> Batch:
        import torch

        targets = cast("Tensor", step.batch[Field.TARGET_IDS])
        real = targets >= 0
        draws = torch.rand(targets.shape, device=targets.device).masked_fill(~real, 2.0)
        masked = real & (draws.argsort(1).argsort(1) < self._masked(targets).unsqueeze(1))
        rows, columns = (real & ~masked).nonzero(as_tuple=True)
        ids = cast("Tensor", step.batch[Field.INPUT_IDS]).clone()
        ids[rows, cast("Tensor", step.batch[TARGET_STARTS])[rows] + columns] = targets[rows, columns]
        return {**step.batch, Field.INPUT_IDS: ids, Field.TARGET_IDS: targets.masked_fill(~masked, IGNORED)}

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"sequence_to_sequence": int(self._masked(batch[Field.TARGET_IDS]).sum())}

    def _masked(self, targets: Tensor) -> Tensor:
        """int64 [B]: number of tokens to mask in each of `targets` [B, T]."""
        tokens = (targets >= 0).sum(1)
        return (self.rate * tokens).round().long().clamp(min=1).minimum(tokens)
