"""Projected attention layers: each line has an attention of a small width beside every layer of the backbone that it
shares with the others (Stickland & Murray 2019, BERT and PALs)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from pydantic import Field, model_validator

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.strategies import Decision, Strategy
from pipelines.vocabulary import Ability

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

MODULE = "projected_attention"
"""Name of the modules in the network of a line."""


class ProjectedAttentionStrategy(Strategy, name="projected_attention"):
    """Backbone, heads and the projected attention of each line train together.

    h ↦ gelu(V_D · MH(V_E · h)) of the input h of a layer is added before the layer's last normalisation (the gelu and
    the six heads are those of the authors' code). V_E and V_D of a line serve all layers. Raises RecipeError for a
    network that is no encoder, and for an architecture that names no end of a sub-layer.
    """

    paper = "arXiv:1902.02671"
    decides = frozenset({Decision.WHICH})

    size: int = Field(204, ge=1)
    """Width of the attention; 204 beside a backbone of width 768."""
    heads: int = Field(6, ge=1)
    """Number of attention heads."""

    @model_validator(mode="after")
    def _divides(self) -> ProjectedAttentionStrategy:
        if self.size % self.heads:
            below = self.size - self.size % self.heads
            raise ValueError(
                f"size: {self.size} is no multiple of its {self.heads} heads; {below or self.heads} would be"
            )
        return self

    def extend_line(self, network: PreTrainedModel) -> None:
        from pipelines.networks.projected_attention import ProjectedAttention

        architecture = Architecture.of(network.config)
        if architecture is None or not _supports(architecture):
            known = ", ".join(one.name for one in Architecture.all() if _supports(one))
            raise RecipeError(
                f"strategy {self.name}: it stands beside the layers of an encoder whose sub-layers end in modules that "
                f"are known, and the backbone is {network.config.model_type}; supported: {known}"
            )
        layers = _layers(network.base_model, architecture)
        # the configuration that changes with the backbone's attention; that of a line may be a copy
        config = cast("PreTrainedModel", network.base_model).config
        ProjectedAttention(config, self.size, self.heads, layers).add_to(network, MODULE)


def _supports(architecture: Architecture) -> bool:
    known = all(names.sub_layer_ends for names in architecture.stacks.values())
    return known and architecture.offers >= {Ability.BIDIRECTIONAL, Ability.ONE_STACK}


def _layers(backbone: nn.Module, architecture: Architecture) -> Iterator[tuple[nn.Module, nn.Module]]:
    """Each layer of `backbone`, with the module that ends its last sub-layer."""
    for path, names in architecture.stacks.items():
        layers = backbone.get_submodule(path).children()
        yield from ((layer, layer.get_submodule(names.sub_layer_ends[-1])) for layer in layers)
