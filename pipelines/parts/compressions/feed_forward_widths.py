"""Narrower feed-forward sub-layers: their weakest neurons are removed (Li et al. 2017)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.compressions import Calibration, Change, Compression, Level

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedModel

    from pipelines.networks.stored_size import StoredSize


class FeedForwardWidths(Compression, name="feed_forward_widths"):
    """Remove the inner neurons of every feed-forward sub-layer whose weights have the smallest sum of magnitudes, those
    into the neuron and those out of it: bytes and operations fall.

    Li et al. rank the filters of a convolution so (§3.1); a neuron is a filter of width 1. The record holds the number
    of neurons that are left. Raises RecipeError for an architecture that names no such layers.
    """

    paper = "arXiv:1608.08710"
    level = Level.WIDTHS

    share: float = Field(0.5, gt=0, le=1)
    """Share of the neurons of each sub-layer to keep, at least one."""

    def size_after(self, size: StoredSize) -> StoredSize:
        return size._replace(feed_forward=size.feed_forward * self.share)

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        from pipelines.networks.projections import width_of

        widths = {path: width_of(inner, inputs=False) for path, (inner, _) in feed_forward_layers(network).items()}
        kept = {path: max(1, round(width * self.share)) for path, width in widths.items()}
        return {path: {"width": kept[path]} for path, width in widths.items() if kept[path] < width}

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        from pipelines.networks.projections import select

        layers = feed_forward_layers(network)
        for path, values in change.items():
            inner, outer = layers[path]
            order = _strength(inner, outer).argsort(descending=True, stable=True)
            kept = order[: values["width"]].sort().values
            select(inner, kept, inputs=False)
            select(outer, kept, inputs=True)
        return network


def feed_forward_layers(network: PreTrainedModel) -> dict[str, tuple[Module, Module]]:
    """Path of each layer → the inner and the outer linear layer of its feed-forward sub-layer."""
    from pipelines.networks.projections import is_projection

    config, backbone = network.config, network.base_model
    architecture = Architecture.of(config)
    layers = {
        f"{path}.{index}": (layer.get_submodule(names.feed_forward[0]), layer.get_submodule(names.feed_forward[1]))
        for path, names in (architecture.stacks if architecture is not None else {}).items()
        if names.feed_forward is not None
        for index, layer in enumerate(backbone.get_submodule(path).children())
    }
    if not layers or not all(is_projection(one) for pair in layers.values() for one in pair):
        known = ", ".join(
            one.name for one in Architecture.all() if all(names.feed_forward for names in one.stacks.values())
        )
        raise RecipeError(
            f"compression feed_forward_widths: no feed-forward layers are known of the backbone {config.model_type}; "
            f"supported: {known}"
        )
    return layers


def _strength(inner: Module, outer: Module) -> Tensor:
    """float64 [neurons]: the sum of the magnitudes of the weights into each neuron, and of those out of it."""
    from pipelines.networks.masked_weights import weight_of
    from pipelines.networks.projections import axis_of

    into = weight_of(inner).detach().abs().double().sum(axis_of(inner, inputs=True))
    return into + weight_of(outer).detach().abs().double().sum(axis_of(outer, inputs=False))
