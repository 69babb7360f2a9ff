"""Base class of backbones of recurrent layers that read words in both directions."""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability


class BidirectionalBackbone(UnboundedBackbone):
    """Layers in both directions over trained vectors of tokens; the features of a stage may be read too."""

    hidden_size: int = Field(200, gt=1)
    """Width of a layer's output, in elements, half of them from each direction."""
    num_hidden_layers: int = Field(1, gt=0)
    """Number of layers, each in both directions."""
    embedding_size: int = Field(100, ge=0)
    """Width of the trained vector of each token, random at first; 0: none, where the stage has features."""
    input_dropout: float = Field(0.5, ge=0, lt=1)
    """Share of the elements dropped of what the first layer reads."""

    @field_validator("hidden_size")
    @classmethod
    def _has_halves(cls, value: int) -> int:
        if value % 2:
            raise ValueError("an even number: half of the elements come from each direction")
        return value

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.FEATURES, Ability.ONE_STACK})

    def tiny(self) -> Self:
        return self.model_copy(update={"hidden_size": 32, "embedding_size": min(self.embedding_size, 16)})
