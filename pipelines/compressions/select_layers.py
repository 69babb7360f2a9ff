"""A student made of some of its teacher's layers (Sanh et al. 2019, DistilBERT §3; Sun et al. 2019, PKD §3.2)."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from pipelines.compressions import Compression
from pipelines.errors import RecipeError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class SelectLayers(Compression, name="select_layers"):
    """Keep a share of the encoder layers, with their weights; embeddings and head stay."""

    paper = "arXiv:1910.01108"

    share: float = Field(0.5, gt=0, le=1)
    """Share of the layers that stay, at least one."""
    which: Literal["spread", "first", "last"] = "spread"
    """`spread` keeps evenly spaced ones that end with the top layer."""

    def shrink(self, network: PreTrainedModel) -> PreTrainedModel:
        from torch import nn

        encoder = getattr(network.base_model, "encoder", None)
        layers = getattr(encoder, "layer", None)
        if not isinstance(layers, nn.ModuleList):
            raise RecipeError(
                f"compression select_layers: found no list of layers in a {network.config.model_type} body"
            )
        total = len(layers)
        count = max(1, round(total * self.share))
        chosen = {
            "spread": [round((index + 1) * total / count) - 1 for index in range(count)],
            "first": list(range(count)),
            "last": list(range(total - count, total)),
        }[self.which]
        config = deepcopy(network.config)
        config.num_hidden_layers = count
        student = type(network)(config)
        student.load_state_dict(
            {
                **{key: value for key, value in network.state_dict().items() if ".encoder.layer." not in key},
                **{
                    key.replace(f".encoder.layer.{old}.", f".encoder.layer.{new}.", 1): value
                    for new, old in enumerate(chosen)
                    for key, value in network.state_dict().items()
                    if f".encoder.layer.{old}." in key
                },
            }
        )
        return student
