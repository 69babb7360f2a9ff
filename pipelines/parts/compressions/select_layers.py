"""A student made of some of its teacher's layers (Sanh et al. 2019, DistilBERT §3; Sun et al. 2019, PKD §3.2)."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.parts.compressions import Compression

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module
    from transformers import PretrainedConfig, PreTrainedModel


class SelectLayers(Compression, name="select_layers"):
    """Keep a share of the body's layers, with their weights; embeddings and head stay. A decoder is thinned as its encoder is."""

    paper = "arXiv:1910.01108"

    share: float = Field(0.5, gt=0, le=1)
    """Share of the layers that stay, at least one."""
    which: Literal["spread", "first", "last"] = "spread"
    """`spread` keeps evenly spaced ones that end with the top layer."""

    def shrink(self, network: PreTrainedModel) -> PreTrainedModel:
        from torch import nn

        student = deepcopy(network)
        body = student.base_model
        lists = {name: module for name, module in body.named_modules() if isinstance(module, nn.ModuleList)}
        outermost = [name for name in lists if not any(name.startswith(other + ".") for other in lists)]
        stacks = {name: key for name in outermost if (key := _counted_by(name, len(lists[name]), student.config))}
        if not stacks:
            raise RecipeError(
                f"compression select_layers: found no list of layers in a {network.config.model_type} body"
            )
        for name, key in stacks.items():
            layers = lists[name]
            chosen = self._chosen(len(layers))
            weights = [{k: v.clone() for k, v in layers[index].state_dict().items()} for index in chosen]
            # a layer that stays in its place keeps what only this place has: its index, T5's relative positions
            del layers[len(chosen) :]
            for layer, theirs in zip(layers, weights, strict=True):
                _take(layer, theirs)
            setattr(student.config, key, len(chosen))
            owner: Any = body.get_submodule(name.rpartition(".")[0])
            if getattr(owner, "config", student.config) is not student.config:
                owner.config.num_hidden_layers = len(chosen)  # T5 keeps one for each of its two halves
        return student

    def _chosen(self, total: int) -> list[int]:
        count = max(1, round(total * self.share))
        return {
            "spread": [round((index + 1) * total / count) - 1 for index in range(count)],
            "first": list(range(count)),
            "last": list(range(total - count, total)),
        }[self.which]


def _counted_by(name: str, length: int, config: PretrainedConfig) -> str | None:
    """The configuration key that holds the length of the list of layers `name`; None when it is no such list."""
    for key in ("num_decoder_layers",) if name.startswith("decoder.") else ("num_hidden_layers",):
        if getattr(config, key, None) == length:
            return key
    return None


def _take(layer: Module, weights: dict[str, Tensor]) -> None:
    try:
        unknown = layer.load_state_dict(weights, strict=False).unexpected_keys
    except RuntimeError:
        raise RecipeError("compression select_layers: the layers of this body differ in shape") from None
    assert not unknown, unknown
