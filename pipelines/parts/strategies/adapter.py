"""Adapters: a small bottleneck after every sub-layer trains instead of the backbone (Houlsby et al. 2019)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.parts.architectures import Architecture
from pipelines.parts.strategies import Decision, ParameterGroup, Strategy

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

ADAPTER = ".adapter."
"""Substring of the names of adapter parameters."""


class Adapter(Strategy, name="adapter"):
    """Train adapters, layer normalisation and head; the rest of the backbone is frozen.

    An adapter h ↦ h + W₂ · gelu(W₁ h + b₁) + b₂ follows attention and the feed-forward sub-layer, before the residual
    is added (§2.1, figure 2); in an encoder-decoder, cross-attention too. Adapters are saved with the model. Raises
    RecipeError for an architecture that names no end of a sub-layer, and for an initial model that already has adapters
    of other options.
    """

    paper = "arXiv:1902.00751"
    decides = frozenset({Decision.WHICH})
    precludes = frozenset({Decision.WHEN, Decision.HOLD})

    size: int = Field(64, ge=1)
    """Width of the bottleneck; the paper searches 8, 64 and 256 for a backbone of width 1024."""
    deviation: float = Field(1e-3, gt=0, le=1e-2)
    """Standard deviation of new weights, truncated at two deviations; the paper measures no loss up to 1e-2."""

    def extend(self, network: PreTrainedModel) -> None:
        from torch import nn

        from pipelines.networks.adapter import AdaptedDropout, Bottleneck

        config = network.config
        names = list(_sub_layer_ends(network.base_model, Architecture.of(config)))
        if not names:
            known = [
                one.name for one in Architecture.all() if any(stack.sub_layer_ends for stack in one.stacks.values())
            ]
            raise RecipeError(
                f"strategy adapter: unknown sub-layers of the backbone {config.model_type}; supported: "
                f"{', '.join(known)}"
            )
        for name in names:
            end = network.base_model.get_submodule(name)
            if not isinstance(end, nn.Dropout) or isinstance(end, AdaptedDropout):
                raise RecipeError(
                    "strategy adapter: the initial model already has adapters with other options; use the options they "
                    "were made with, or start from a stage without adapters"
                )
            owner, _, attribute = name.rpartition(".")
            adapter = Bottleneck(config.hidden_size, self.size, self.deviation)
            setattr(network.base_model.get_submodule(owner), attribute, AdaptedDropout(end.p, adapter))

    def groups(self, groups: Sequence[ParameterGroup]) -> list[ParameterGroup]:
        names = {re.escape(name) for one in Architecture.all() for name in one.normalisation}
        normalisation = re.compile(rf"\.({'|'.join(sorted(names))})\.(weight|bias)$")
        return [
            group.replace(
                parameters=[
                    (name, parameter)
                    for name, parameter in group.parameters
                    if group.is_head or ADAPTER in name or normalisation.search(name)
                ]
            )
            for group in groups
        ]


def _sub_layer_ends(backbone: nn.Module, architecture: Architecture | None) -> Iterator[str]:
    """Paths of the dropout modules that end the sub-layers of `backbone`, layer after layer."""
    from torch import nn

    for path, names in architecture.stacks.items() if architecture is not None else ():
        layers = backbone.get_submodule(path)
        assert isinstance(layers, nn.ModuleList)
        yield from (f"{path}.{index}.{end}" for index in range(len(layers)) for end in names.sub_layer_ends)
