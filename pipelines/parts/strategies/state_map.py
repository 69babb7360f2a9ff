"""Linear map of an encoder's states: nothing else trains (Wang et al. 2019, Cross-Lingual BERT Transformation)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipelines.errors import RecipeError
from pipelines.parts.strategies import Decision, ParameterGroup, Strategy

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel


class StateMapping(Strategy, name="state_map"):
    """Train a linear map of the top states of the backbone, which is frozen and has no dropout meanwhile; so is the
    head.

    The map begins as the identity, and is saved with the backbone: a head that a later stage puts on it reads mapped
    states. Raises RecipeError for an encoder-decoder, and for an initial model that has a map already.
    """

    paper = "arXiv:1909.06775"
    decides = frozenset({Decision.WHICH})
    precludes = frozenset({Decision.WHEN, Decision.RATES, Decision.HOLD})

    def extend(self, network: PreTrainedModel) -> None:
        from pipelines.networks.state_map import MODULE, StateMap

        backbone = network.base_model
        if backbone is network or network.config.is_encoder_decoder:
            raise RecipeError(
                f"strategy {self.name}: the backbone {network.config.model_type} under this head has no single stack "
                "of layers whose states could be mapped; start from an encoder"
            )
        if hasattr(backbone, MODULE):
            raise RecipeError(
                f"strategy {self.name}: the initial model already has a map; start from the stage before it"
            )
        StateMap(int(network.config.hidden_size)).attach(backbone)

    def groups(self, groups: Sequence[ParameterGroup]) -> list[ParameterGroup]:
        from pipelines.networks.state_map import MODULE

        return [
            group.replace(parameters=[(name, value) for name, value in group.parameters if f".{MODULE}." in name])
            for group in groups
        ]

    def begin(self, network: PreTrainedModel) -> Any:
        # in each forward pass, since the training loop puts the whole network into training mode repeatedly
        network.base_model.register_forward_pre_hook(_without_dropout)


def _without_dropout(backbone: nn.Module, _: Any) -> None:
    if backbone.training:
        backbone.eval()
