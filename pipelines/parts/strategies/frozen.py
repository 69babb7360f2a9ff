"""The body is a fixed reader of features; only what lies above it trains (Peters et al. 2019, To Tune or Not to Tune)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from pipelines.errors import RecipeError
from pipelines.parts.strategies import Decision, Group, Strategy, refuse_without_head

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedModel

MIX = "scalar_mix"
"""Name of the mixture in the network."""


class Frozen(Strategy, name="frozen"):
    """No weight of the body trains, and its dropout is off while the head trains.

    Raises RecipeError where the head adds no weights to the body, and for a body whose layers cannot be mixed.
    """

    paper = "arXiv:1903.05987"
    decides = frozenset({Decision.WHICH})
    settles = frozenset({Decision.WHEN, Decision.RATES, Decision.HOLD})

    features: Literal["top", "scalar_mix"] = "top"
    """What the head reads: the top layer, or γ · Σ sⱼ · hⱼ over all layers and the embeddings, with learned γ and
    s = softmax(w) (Peters et al. 2018, arXiv:1802.05365, equation 1)."""

    def extend(self, network: PreTrainedModel) -> None:
        if self.features == "top":
            return
        from pipelines.networks.scalar_mix import ScalarMix

        body = network.base_model
        if body is network or network.config.is_encoder_decoder:
            raise RecipeError(
                f"strategy frozen: the body {network.config.model_type} under this head has no one sequence of layers to "
                "mix; use features: top"
            )
        mix = ScalarMix(network.config.num_hidden_layers)
        setattr(network, MIX, mix)
        mix.mix_what_is_read_from(body)

    def groups(self, groups: Sequence[Group]) -> list[Group]:
        refuse_without_head(self, groups)
        return [group for group in groups if group.is_head]

    def begin(self, network: PreTrainedModel) -> Any:
        # asked at each pass, since the loop puts the whole network into training mode when it pleases
        network.base_model.register_forward_pre_hook(_without_dropout)


def _without_dropout(body: nn.Module, _: Any) -> None:
    if body.training:
        body.eval()
