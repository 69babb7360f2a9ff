"""ModernBERT (Warner et al. 2024)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures import Architecture, LayerNames
from pipelines.vocabulary import Ability


class ModernBert(Architecture, name="modernbert"):
    """An encoder with rotary positions, gated feed-forward sub-layers, and normalisation before each sub-layer; one
    layer in three attends to the whole row, the others to a window (`local_attention`) around each token.

    Documents of a packed row do not attend to each other, which is what the paper's unpadding computes.
    """

    paper = "arXiv:2412.13663"

    # an attention pattern would replace the windows of its layers
    offers = frozenset({Ability.BIDIRECTIONAL, Ability.ONE_STACK, Ability.LAYERED, Ability.WITHIN_DOCUMENTS})
    tiny: ClassVar[Mapping[str, int]] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 48,
    }
    # one module computes query, key and value, and another one both neurons and their gates
    stacks: ClassVar[Mapping[str, LayerNames]] = {"layers": LayerNames("num_hidden_layers", None)}
    ids: ClassVar[Mapping[str, str]] = {
        **Architecture.ids,
        "cls_token_id": "cls",
        "sep_token_id": "sep",
    }
    embedding_tables = ("embeddings.tok_embeddings",)
    masked_lm: ClassVar[tuple[str, ...]] = ("head", "decoder")
    poolings = frozenset({"cls", "mean"})
    normalisation = ("norm", "attn_norm", "mlp_norm", "final_norm")
