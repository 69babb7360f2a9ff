"""GPT, the first one (Radford et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures import Architecture, LayerNames
from pipelines.vocabulary import Ability


class OpenAIGpt(Architecture, name="openai-gpt"):
    """A decoder with learned positions that normalises the sum after each sub-layer (§4.1), where `gpt2` normalises the
    input of each and the output of the last; the inner size is four times the width."""

    paper = "Radford et al. 2018"

    # its layers compute attention by themselves: no other implementation, and so no pattern, can be chosen
    offers = frozenset({Ability.CAUSAL, Ability.ONE_STACK})
    tiny: ClassVar[Mapping[str, int]] = {"n_embd": 32, "n_layer": 2, "n_head": 2}
    width = "n_embd"
    # no removable heads: a layer splits query, key and value by the width that it was built with
    stacks: ClassVar[Mapping[str, LayerNames]] = {
        "h": LayerNames("n_layer", ("mlp.c_fc", "mlp.c_proj"), sub_layer_ends=("attn.resid_dropout", "mlp.dropout"))
    }
    positions = "n_positions"
    embedding_tables = ("tokens_embed", "positions_embed")
    embedding_sum = "drop"
    normalisation = ("ln_1", "ln_2")
