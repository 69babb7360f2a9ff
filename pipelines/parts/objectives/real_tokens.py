"""Which tokens of a batch are no padding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.objectives import Batch
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from torch import Tensor


def real_tokens(batch: Batch) -> Tensor:
    """int64 [B, L]: 1 for a token, 0 for padding; all 1 where nothing is padded, as in rows of plain text."""
    import torch

    mask: Tensor | None = batch.get(Field.ATTENTION_MASK)
    return torch.ones_like(batch[Field.INPUT_IDS]) if mask is None else mask
