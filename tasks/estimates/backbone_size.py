"""The dimensions of a backbone, known before it is built, and the operations of its forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pipelines.parts.architectures import Architecture
from pipelines.vocabulary import Ability

USUAL_WIDTH, USUAL_LAYERS = 768, 12
"""Dimensions where a recipe states none."""
RELATIVE = 2
"""Cost factor of attention with relative positions, for which there is no fused kernel."""


@dataclass(frozen=True)
class BackboneSize:
    """The dimensions of a backbone, known before it is built."""

    dims: Mapping[str, Any]
    described: str = ""
    offers: frozenset[Ability] = frozenset()

    @property
    def width(self) -> float:
        if Ability.COUNTED in self.offers:  # the score of a counted token is looked up
            return 1.0
        return float(self.dims.get(self._architecture.width if self._architecture else "hidden_size") or USUAL_WIDTH)

    @property
    def layers(self) -> float:
        if self._architecture is None:  # a table has no layers; that of word vectors has a width
            table = "hidden_size" in self.dims or Ability.COUNTED in self.offers
            return float(self.dims.get("num_hidden_layers") or (0 if table else USUAL_LAYERS))
        first, *others = (self.dims.get(stack.count_key) for stack in self._architecture.stacks.values())
        # layers that share their weights are computed as often as others
        computed = max(first or 0, self.dims.get("num_hidden_layers") or 0)
        return float(computed or USUAL_LAYERS) + sum(float(count or 0) for count in others)

    @property
    def _architecture(self) -> Architecture | None:
        return _architecture(self.dims.get("architecture", self.dims.get("model_type")))


@cache
def _architecture(model_type: str | None) -> Architecture | None:
    return Architecture.of({"model_type": model_type})


def forward_operations(backbone: BackboneSize, length: int) -> float:
    """Operations per token of a forward pass: 12 h² weights per layer plus the products of attention; 8 h² weights per
    recurrent layer."""
    width = backbone.width
    if Ability.RECURRENT in backbone.offers:
        return backbone.layers * 16 * width**2
    return (
        backbone.layers
        * (24 * width**2 + 4 * length * width)
        * (RELATIVE if Ability.TWO_STREAM in backbone.offers else 1)
    )
