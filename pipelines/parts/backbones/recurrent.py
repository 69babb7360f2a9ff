"""Base class of backbones of stacked recurrent layers of one width."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from pipelines.parts.backbones.unbounded import UnboundedBackbone
from pipelines.vocabulary import Ability


class RecurrentBackbone(UnboundedBackbone):
    """Recurrent layers that carry their state from token to token, and from a row to the one that continues it."""

    hidden_size: int = Field(256, gt=0)
    """Width of the embeddings and of every layer, in elements."""
    num_hidden_layers: int = Field(1, gt=0)
    """Number of recurrent layers."""

    @property
    def offers(self) -> frozenset[Ability]:
        return frozenset({Ability.CAUSAL, Ability.RECURRENT, Ability.MEMORY, Ability.ONE_STACK})

    def tiny(self) -> Self:
        return self.model_copy(update={"hidden_size": 32, "num_hidden_layers": min(self.num_hidden_layers, 2)})
