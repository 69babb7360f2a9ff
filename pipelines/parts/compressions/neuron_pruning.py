"""Pruning of the neurons of feed-forward sub-layers by the loss's sensitivity to them (Molchanov et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field, PositiveInt

from pipelines.errors import RecipeError
from pipelines.parts.compressions import Calibration, Change, Level
from pipelines.parts.compressions.gate_importance import OrderedPruning, remove_least

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PreTrainedModel

    from pipelines.networks.stored_size import StoredSize


class NeuronPruning(OrderedPruning, name="neuron_pruning"):
    """Remove the inner neurons of the feed-forward sub-layers that change the loss least, over all layers together:
    bytes and operations fall.

    The importance of a neuron is E|Σ w · ∂L/∂w| over the weights out of it, with the expectation over examples of the
    calibration batches (§3.1), which is that of a head with the neuron's gate in place of the head's. It is compared
    between layers as it is (abstract: consistent across layers). Neurons are removed in rounds, each with the
    importance in the network that is left; every layer keeps one. Raises RecipeError for an architecture that names no
    such layers.
    """

    paper = "arXiv:1906.10771"
    level = Level.WIDTHS

    share: float = Field(0.5, gt=0, le=1)
    """Share of the neurons to keep, over all layers."""
    rounds: PositiveInt = 5
    """Number of times that the importance is computed."""

    def size_after(self, size: StoredSize) -> StoredSize:
        return size._replace(feed_forward=size.feed_forward * self.share)

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        import torch

        from pipelines.networks.gates import Neurons
        from pipelines.networks.projections import width_of

        assert calibration is not None
        layers = self._layers(network)
        sites = [Neurons(path, outer, width_of(outer, inputs=True)) for path, (_, outer) in layers.items()]
        masks = [torch.ones(one.count) for one in sites]
        total = sum(one.count for one in sites)
        to_remove = total - max(len(sites), round(total * self.share))
        random = np.random.default_rng([calibration.seed, 7])
        for number in range(1, self.rounds + 1):
            scores = self.scores(network, sites, masks, calibration, random)
            remove_least(masks, scores, total - round(to_remove * number / self.rounds))
        return {
            one.path: {"width": int(mask.sum()), "kept": _hexadecimal(mask)}
            for one, mask in zip(sites, masks, strict=True)
            if not bool(mask.all())
        }

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        import torch

        from pipelines.networks.projections import select, width_of

        layers = self._layers(network)
        for path, values in change.items():
            inner, outer = layers[path]
            kept = torch.from_numpy(_positions(values["kept"], width_of(outer, inputs=True)))
            select(inner, kept, inputs=False)
            select(outer, kept, inputs=True)
        return network

    def _layers(self, network: PreTrainedModel) -> dict[str, tuple[Module, Module]]:
        """Path of each layer → the inner and the outer linear layer of its feed-forward sub-layer."""
        from pipelines.parts.compressions.feed_forward_widths import FeedForwardWidths, feed_forward_layers

        try:
            return feed_forward_layers(network)
        except RecipeError as error:
            raise RecipeError(str(error).replace(FeedForwardWidths.name, self.name)) from None


def _hexadecimal(mask: Tensor) -> str:
    """A bit for each neuron, 1 where it is kept, four to a digit: lists of numbers would outweigh small networks."""
    return np.packbits(mask.bool().numpy()).tobytes().hex()


def _positions(kept: str, width: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The neurons that `_hexadecimal` recorded as kept, of `width`."""
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(kept), dtype=np.uint8), count=width)
    return np.flatnonzero(bits).astype(np.int64)
