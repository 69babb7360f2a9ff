"""Pruning of whole layers by the loss's sensitivity to them (Michel et al. 2019; Molchanov et al. 2019)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.networks.shape import NetworkShape
from pipelines.parts.architectures import Architecture
from pipelines.parts.compressions import Calibration, Level, Shrunk
from pipelines.parts.compressions.gate_importance import OrderedPruning, remove_least
from pipelines.parts.compressions.select_layers import SelectLayers

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from pipelines.networks.gates import WholeLayer
    from pipelines.networks.stored_size import StoredSize


class LayerPruning(OrderedPruning, name="layer_pruning"):
    """Remove the layers of the backbone that change the loss least; embeddings and head stay.

    A gate ξ weighs what a layer adds, x + ξ (f(x) − x) for its f(x); its importance is E|∂L/∂ξ| over the examples of
    the calibration batches, the first term of the Taylor series of what the loss becomes without it (Molchanov et al.
    2019, §3.1, with a layer as the structure). Layers go one at a time, each with the importance in the network that
    is left. Raises RecipeError for an architecture of two stacks, or whose layers differ in shape.
    """

    paper = "arXiv:1906.10771"
    level = Level.LAYERS

    share: float = Field(0.5, gt=0, le=1)
    """Share of the layers to keep, at least one layer."""

    def shape_after(self, shape: NetworkShape) -> NetworkShape:
        return shape if shape.layers is None else shape._replace(layers=self._number(shape.layers))

    def size_after(self, size: StoredSize) -> StoredSize:
        return size.layers_times(self.share)

    def shrink(self, network: PreTrainedModel, calibration: Calibration | None = None) -> Shrunk:
        assert calibration is not None
        kept = calibration.decide(lambda: {"kept": self._kept(network, calibration)})["kept"]
        return _ListedLayers(kept=tuple(kept)).shrink(network)  # the configuration records their number

    def _number(self, total: int) -> int:
        return max(1, round(total * self.share))

    def _kept(self, network: PreTrainedModel, calibration: Calibration) -> list[int]:
        """The layers to keep, in their order."""
        import torch

        layers = self._layers(network)
        left = self._number(len(layers))
        masks = [torch.ones(1) for _ in layers]
        random = np.random.default_rng([calibration.seed, 8])
        for keep in reversed(range(left, len(layers))):
            scores = self.scores(network, layers, masks, calibration, random)
            remove_least(masks, scores, keep, least=0)
        return [number for number, mask in enumerate(masks) if bool(mask.all())]

    def _layers(self, network: PreTrainedModel) -> list[WholeLayer]:
        from pipelines.networks.gates import WholeLayer

        config = network.config
        architecture = Architecture.of(config)
        stacks = list(architecture.stacks) if architecture is not None else []
        if len(stacks) != 1:
            raise RecipeError(
                f"compression {self.name}: layers are ranked in one stack, and the backbone {config.model_type} has "
                f"{len(stacks) or 'none that is known'}; {SelectLayers.name} takes evenly spaced ones"
            )
        layers = network.base_model.get_submodule(stacks[0]).children()
        return [WholeLayer(f"{stacks[0]}.{number}", layer) for number, layer in enumerate(layers)]


class _ListedLayers(SelectLayers):
    """The layers of a list, taken as `SelectLayers` takes evenly spaced ones."""

    kept: tuple[int, ...]

    def _chosen(self, total: int) -> list[int]:
        return list(self.kept)
