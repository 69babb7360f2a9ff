"""Adapters: a small bottleneck after every sub-layer trains instead of the backbone (Houlsby et al. 2019)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from pipelines.errors import RecipeError
from pipelines.parts.strategies import Decision, ParameterGroup, Strategy

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_BERT = r"\.layer\.\d+\.(attention\.)?output\.dropout$"
SUB_LAYERS = {
    "bert": _BERT,
    "roberta": _BERT,
    "electra": _BERT,
    "gpt2": r"\bh\.\d+\.(attn\.resid_dropout|mlp\.dropout)$",
    "t5": r"\bblock\.\d+\.layer\.\d+\.dropout$",
}
"""Architecture (`model_type`) → pattern of the dropout modules that end its sub-layers, before the residual is added.
XLNet is missing: its attention uses one dropout module for both its probabilities and its output."""
NORMALISATION = re.compile(r"\.(LayerNorm|ln_1|ln_2|ln_f|layer_norm|final_layer_norm)\.(weight|bias)$")
"""Layer-normalisation parameters of these architectures."""
ADAPTER = ".adapter."
"""Substring of the names of adapter parameters."""


class Adapter(Strategy, name="adapter"):
    """Train adapters, layer normalisation and head; the rest of the backbone is frozen.

    An adapter h ↦ h + W₂ · gelu(W₁ h + b₁) + b₂ follows attention and the feed-forward sub-layer, before the residual
    is added (§2.1, figure 2); in an encoder-decoder, cross-attention too. Adapters are saved with the model. Raises
    RecipeError for an architecture whose sub-layers are not listed in `SUB_LAYERS`, and for an initial model that
    already has adapters of other options.
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
        pattern = SUB_LAYERS.get(config.model_type)
        if pattern is None:
            raise RecipeError(
                f"strategy adapter: unknown sub-layers of the backbone {config.model_type}; supported: "
                f"{', '.join(sorted(SUB_LAYERS))}"
            )
        ends = [(name, end) for name, end in network.base_model.named_modules() if re.search(pattern, f".{name}")]
        for name, end in ends:
            if not isinstance(end, nn.Dropout) or isinstance(end, AdaptedDropout):
                raise RecipeError(
                    "strategy adapter: the initial model already has adapters with other options; use the options they "
                    "were made with, or start from a stage without adapters"
                )
            owner, _, attribute = name.rpartition(".")
            adapter = Bottleneck(config.hidden_size, self.size, self.deviation)
            setattr(network.base_model.get_submodule(owner), attribute, AdaptedDropout(end.p, adapter))

    def groups(self, groups: Sequence[ParameterGroup]) -> list[ParameterGroup]:
        return [
            group.replace(
                parameters=[
                    (name, parameter)
                    for name, parameter in group.parameters
                    if group.is_head or ADAPTER in name or NORMALISATION.search(name)
                ]
            )
            for group in groups
        ]
