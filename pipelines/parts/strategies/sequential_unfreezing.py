"""Sequential unfreezing: new layers, then the pre-trained ones, then the embeddings (Chronopoulou et al. 2019, §2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import Field, model_validator

from pipelines.parts.strategies import Decision, ParameterGroup, Strategy, TrainingProgress, require_head


class SequentialUnfreezing(Strategy, name="sequential_unfreezing"):
    """Train the head alone for `layers_after` epochs, then all layers of the backbone too, from `embeddings_after` on
    the embeddings as well.

    Unlike in `gradual_unfreezing`, the layers of the backbone begin together. Raises RecipeError if the head adds no
    weights to the backbone.
    """

    paper = "arXiv:1902.10547"
    decides = frozenset({Decision.WHEN})

    layers_after: float = Field(2.0, ge=0)
    """Epochs before the layers of the backbone train."""
    embeddings_after: float = Field(5.0, ge=0)
    """Epochs before the embeddings train; at least `layers_after`."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.embeddings_after < self.layers_after:
            raise ValueError(
                f"embeddings_after {self.embeddings_after:g} is before layers_after {self.layers_after:g}; the "
                "embeddings train last"
            )
        return self

    def groups(self, groups: Sequence[ParameterGroup]) -> list[ParameterGroup]:
        require_head(self, groups)
        return list(groups)

    def trains(self, group: ParameterGroup, progress: TrainingProgress) -> bool:
        if group.is_head:
            return True
        epochs = progress.step / progress.per_epoch
        return epochs >= (self.layers_after if group.depth else self.embeddings_after)
