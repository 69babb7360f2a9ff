"""A student initialised with a subset of its teacher's layers (Sanh et al. 2019, DistilBERT §3; Sun et al. 2019, PKD
§3.2)."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.networks.shape import NetworkShape
from pipelines.parts.compressions import Calibration, Compression, Level, Shrunk

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PretrainedConfig, PreTrainedModel

    from pipelines.networks.stored_size import StoredSize


class SelectLayers(Compression, name="select_layers"):
    """Keep a share of the backbone's layers, with their weights; embeddings and head stay.

    Encoder and decoder are treated alike.
    """

    paper = "arXiv:1910.01108"
    level = Level.LAYERS

    share: float = Field(0.5, gt=0, le=1)
    """Share of the layers to keep, at least one layer."""
    which: Literal["spread", "first", "last"] = "spread"
    """Layers to keep: `spread` are evenly spaced ones up to the top layer."""

    def shape_after(self, shape: NetworkShape) -> NetworkShape:
        return shape if shape.layers is None else shape._replace(layers=len(self._chosen(shape.layers)))

    def size_after(self, size: StoredSize) -> StoredSize:
        return size.layers_times(self.share)

    def shrink(self, network: PreTrainedModel, calibration: Calibration | None = None) -> Shrunk:
        from torch import nn

        student = deepcopy(network)
        backbone = student.base_model
        lists = {name: module for name, module in backbone.named_modules() if isinstance(module, nn.ModuleList)}
        outermost = [name for name in lists if not any(name.startswith(other + ".") for other in lists)]
        stacks = {name: key for name in outermost if (key := _count_key(name, len(lists[name]), student.config))}
        if not stacks:
            raise RecipeError(
                f"compression select_layers: the backbone {network.config.model_type} has no list of layers"
            )
        for name, key in stacks.items():
            layers = lists[name]
            chosen = self._chosen(len(layers))
            weights = [{k: v.clone() for k, v in layers[index].state_dict().items()} for index in chosen]
            # reuse the first modules, which keep what belongs to their index: the index itself, T5's relative positions
            del layers[len(chosen) :]
            for layer, state in zip(layers, weights, strict=True):
                _load(layer, state)
            setattr(student.config, key, len(chosen))
            owner: Any = backbone.get_submodule(name.rpartition(".")[0])
            if getattr(owner, "config", student.config) is not student.config:
                owner.config.num_hidden_layers = len(chosen)  # T5 has a configuration for each of its halves
        return Shrunk(student, {})  # the configuration records the number of layers

    def _chosen(self, total: int) -> list[int]:
        count = max(1, round(total * self.share))
        return {
            "spread": [round((index + 1) * total / count) - 1 for index in range(count)],
            "first": list(range(count)),
            "last": list(range(total - count, total)),
        }[self.which]


def _count_key(name: str, length: int, config: PretrainedConfig) -> str | None:
    """The configuration key of the number of layers in the module list `name`; None if it is not a list of layers."""
    for key in ("num_decoder_layers", "decoder_layers") if name.startswith("decoder.") else ("num_hidden_layers",):
        if getattr(config, key, None) == length:
            return key
    return None


def _load(layer: Module, weights: dict[str, Tensor]) -> None:
    try:
        unknown = layer.load_state_dict(weights, strict=False).unexpected_keys
    except RuntimeError:
        raise RecipeError("compression select_layers: the layers of this backbone differ in shape") from None
    if unknown:
        raise RecipeError(
            f"compression select_layers: the layers of this backbone differ: a chosen one has {unknown[0]}, and the "
            "one whose place it would take has not; choose the first layers (which: first)"
        )
