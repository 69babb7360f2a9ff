"""GPT-2 (Radford et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures import Architecture, LayerNames, RemovableHeads
from pipelines.vocabulary import Ability


class Gpt2(Architecture, name="gpt2"):
    """A decoder with learned positions; one module computes query, key and value."""

    paper = "Radford et al. 2019"

    offers = frozenset({Ability.CAUSAL, Ability.ONE_STACK, Ability.LAYERED, Ability.WITHIN_DOCUMENTS})
    tiny: ClassVar[Mapping[str, int]] = {"n_embd": 32, "n_layer": 2, "n_head": 2, "n_inner": 64}
    width = "n_embd"
    stacks: ClassVar[Mapping[str, LayerNames]] = {
        "h": LayerNames(
            "n_layer",
            ("mlp.c_fc", "mlp.c_proj"),
            sub_layer_ends=("attn.resid_dropout", "mlp.dropout"),
            heads=RemovableHeads(("attn.c_attn",), "attn.c_proj"),
        )
    }
    positions = "n_positions"
    embedding_tables = ("wte", "wpe")
    embedding_sum = "drop"
    normalisation = ("ln_1", "ln_2", "ln_f")
