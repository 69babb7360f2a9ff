"""Transfer of the lowest layers alone (Yosinski et al. 2014; Radford et al. 2018, GPT §5, figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.strategies import Decision, Strategy

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel


class PartialTransfer(Strategy, name="partial_transfer"):
    """Begin with the embeddings and the lowest layers of the start; the layers above, and the pooler, are random again.

    In an encoder-decoder, the lowest layers of either stack. What trains, and at which rate, is up to other strategies.
    Raises RecipeError for a backbone without a list of layers.
    """

    paper = "arXiv:1411.1792"
    decides = frozenset({Decision.START})

    layers: int = Field(1, ge=0)
    """Number of transferred layers, from the bottom; 0: only the embeddings; all, where there are fewer."""

    def extend(self, network: PreTrainedModel) -> None:
        from torch import nn
        from transformers import AutoModel

        architecture = Architecture.of(network.config)
        if architecture is None:
            known = ", ".join(one.name for one in Architecture.all())
            raise RecipeError(
                f"strategy {self.name}: the backbone {network.config.model_type} names no list of layers; supported: "
                f"{known}"
            )
        fresh, above = AutoModel.from_config(network.config), []
        for path in architecture.stacks:
            layers = network.base_model.get_submodule(path)
            assert isinstance(layers, nn.ModuleList)
            above += [f"{path}.{index}" for index in range(self.layers, len(layers))]
        for path in (*above, *(architecture.pooler if above else ())):
            _copy(fresh, network.base_model, path)


def _copy(source: nn.Module, target: nn.Module, path: str) -> None:
    """Give the module `path` of `target`, if it has one, the weights of that of `source`; modules that were added to it
    keep theirs."""
    known = dict(target.named_parameters())
    for name, value in source.named_parameters():
        if name.startswith(f"{path}.") and name in known:
            known[name].data.copy_(value.data)
