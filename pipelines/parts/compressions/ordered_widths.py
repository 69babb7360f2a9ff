"""Heads and neurons in the order of their importance, so that the first ones are a network (Hou et al. 2020, DynaBERT
§2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.compressions import Calibration, Change, Compression, Level, Shrunk
from pipelines.parts.compressions.head_pruning import head_importance

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.networks.leading_widths import WidthLayer

HEADS, NEURONS = "heads", "neurons"
"""Keys of what is said of a layer."""


class OrderedWidths(Compression, name="ordered_widths"):
    """Sort the heads and the neurons of each layer, the most important first ("network rewiring"): nothing is removed,
    and the network computes what it did.

    The importance of a head with output h is |∂L/∂h · h|, that of a neuron |Σ ∂L/∂w · w| over the weights w into it and
    out of it: what the loss L would change by without it, to first order. Both are averaged over the calibration, of
    heads over its examples and of neurons over its batches. Shapes stay, so that nothing is recorded. Raises
    RecipeError for an architecture whose heads and neurons cannot be left out alone.
    """

    paper = "arXiv:2004.04037"
    level = Level.HEADS

    @property
    def needs_gradients(self) -> bool:
        return True

    def shrink(self, network: PreTrainedModel, calibration: Calibration | None = None) -> Shrunk:
        assert calibration is not None
        order = calibration.decide(lambda: self.choose(network, calibration))
        return Shrunk(self.rebuild(network, order), {})

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        """Path of a layer → the numbers of its heads and of its neurons, the most important first."""
        import torch

        assert calibration is not None
        layers = layers_by_width(network, self.name)
        gates = [torch.ones(one.heads.count) for one in layers]
        heads = head_importance(network, [one.heads for one in layers], gates, calibration)
        neurons = neuron_importance(network, layers, calibration)
        return {
            one.path: {HEADS: _descending(torch.from_numpy(of_heads)), NEURONS: _descending(of_neurons)}
            for one, of_heads, of_neurons in zip(layers, heads, neurons, strict=True)
        }

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        from pipelines.networks.leading_widths import reorder

        layers = layers_by_width(network, self.name)
        reorder(layers, *([change[one.path][key] for one in layers] for key in (HEADS, NEURONS)))
        return network


def layers_by_width(network: PreTrainedModel, compression: str) -> list[WidthLayer]:
    """The layers of a network, for the compression of this name. RecipeError for an architecture in which heads or
    neurons cannot be left out alone."""
    from pipelines.networks.leading_widths import width_layers

    config = network.config
    architecture = Architecture.of(config)
    layers: list[WidthLayer] = []
    if architecture is not None:
        layers = width_layers(network.base_model, architecture.stacks, architecture.head_width(config))
    if not layers:
        known = [
            one.name for one in Architecture.all() if all(two.heads and two.feed_forward for two in one.stacks.values())
        ]
        raise RecipeError(
            f"compression {compression}: heads and neurons of the backbone {config.model_type} cannot be left out "
            f"alone; supported: {', '.join(known)}"
        )
    return layers


def neuron_importance(network: PreTrainedModel, layers: Sequence[WidthLayer], calibration: Calibration) -> list[Tensor]:
    """For each layer float64 [neurons]: |Σ ∂L/∂w · w| over the weights of a neuron, mean over batches."""
    import torch

    from pipelines.networks.masked_weights import weight_of
    from pipelines.networks.projections import axis_of

    weights = [weight_of(module) for one in layers for module in (one.inner, one.outer)]
    axes = [axis for one in layers for axis in (axis_of(one.inner, inputs=True), axis_of(one.outer, inputs=False))]
    totals = [torch.zeros(one.neurons, dtype=torch.float64) for one in layers]
    batches = 0
    for batch in calibration.batches():
        batches += 1
        gradients = torch.autograd.grad(calibration.loss(network, batch), weights)
        terms = [
            (gradient.double() * weight.detach().double()).sum(axis).cpu()
            for gradient, weight, axis in zip(gradients, weights, axes, strict=True)
        ]
        for total, into, out in zip(totals, terms[::2], terms[1::2], strict=True):
            total += (into + out).abs()
    return [total / max(1, batches) for total in totals]


def _descending(importance: Tensor) -> list[int]:
    """The numbers of heads or neurons, the most important first; of equal ones the first."""
    order: list[int] = importance.argsort(descending=True, stable=True).tolist()
    return order
