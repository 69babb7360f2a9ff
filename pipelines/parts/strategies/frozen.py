"""Feature extraction: the backbone is frozen, only the head trains (Peters et al. 2019, To Tune or Not to Tune)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pipelines.errors import RecipeError
from pipelines.parts.strategies import Decision, ParameterGroup, Strategy, require_head

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

MIX = "scalar_mix"
"""Name of the scalar mix module in the network."""


class Frozen(Strategy, name="frozen"):
    """Freeze the backbone and disable its dropout while the head trains.

    Raises RecipeError if the head adds no weights to the backbone, and for a backbone whose layers cannot be mixed.
    """

    paper = "arXiv:1903.05987"
    decides = frozenset({Decision.WHICH})
    precludes = frozenset({Decision.WHEN, Decision.RATES, Decision.HOLD})

    features: Literal["top", "scalar_mix"] = "top"
    """Input of the head: the top layer, or γ · Σ sⱼ · hⱼ over all layers and the embeddings, with learned γ and
    s = softmax(w) (Peters et al. 2018, arXiv:1802.05365, equation 1)."""

    def extend(self, network: PreTrainedModel) -> None:
        if self.features == "top":
            return
        from pipelines.networks.scalar_mix import ScalarMix

        backbone = network.base_model
        if backbone is network or network.config.is_encoder_decoder:
            raise RecipeError(
                f"strategy frozen: the backbone {network.config.model_type} under this head has no single stack "
                "of layers to mix; use features: top"
            )
        mix = ScalarMix(network.config.num_hidden_layers)
        setattr(network, MIX, mix)
        mix.attach(backbone)

    def groups(self, groups: Sequence[ParameterGroup]) -> list[ParameterGroup]:
        require_head(self, groups)
        return [group for group in groups if group.is_head]

    def begin(self, network: PreTrainedModel) -> Any:
        # in each forward pass, since the training loop puts the whole network into training mode repeatedly
        network.base_model.register_forward_pre_hook(_without_dropout)


def _without_dropout(backbone: nn.Module, _: Any) -> None:
    if backbone.training:
        backbone.eval()
