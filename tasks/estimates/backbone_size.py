"""The dimensions of a backbone, known before it is built, and the operations of its forward pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pipelines.vocabulary import Ability

WIDTHS = ("hidden_size", "n_embd", "d_model")
LAYERS = ("num_hidden_layers", "n_layer", "num_layers")
DECODER_LAYERS = ("num_decoder_layers",)
"""Configuration keys of the hidden size and of the numbers of layers, in the spellings of the architectures."""
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
        # the score of a counted token is looked up
        return 1.0 if Ability.COUNTED in self.offers else _first(self.dims, WIDTHS, 768.0)

    @property
    def layers(self) -> float:
        # a table has no layers; that of word vectors has a width
        usual = 0.0 if "hidden_size" in self.dims or Ability.COUNTED in self.offers else 12.0
        return _first(self.dims, LAYERS, usual) + _first(self.dims, DECODER_LAYERS, 0.0)


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


def _first(dims: Mapping[str, Any], names: tuple[str, ...], otherwise: float) -> float:
    return next((float(dims[name]) for name in names if dims.get(name)), otherwise)
