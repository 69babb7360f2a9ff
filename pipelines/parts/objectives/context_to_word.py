"""Negative sampling of the word that a whole context is around (Melamud, Goldberger & Dagan 2016, eq. 1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.parts.objectives import Batch
from pipelines.parts.objectives.negative_sampling import NegativeSampling
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class ContextNegativeSampling(NegativeSampling, name="context_to_word"):
    """The loss of `negative_sampling` where every centre is predicted once, from all of its row: mean over centres."""

    paper = "doi:10.18653/v1/K16-1006"
    needs_fields = frozenset({Field.CENTERS})

    def counts(self, batch: Batch, network: PreTrainedModel) -> dict[str, int]:
        return {"negative_sampling": len(batch[Field.CENTERS])}
