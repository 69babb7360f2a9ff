"""BART (Lewis et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures import Architecture, AttentionNames, LayerNames
from pipelines.vocabulary import Ability

_ATTENTION = AttentionNames(*(f"self_attn.{one}_proj" for one in ("q", "k", "v", "out")))
_FEED_FORWARD = ("fc1", "fc2")


class Bart(Architecture, name="bart"):
    """An encoder-decoder with learned positions, whose halves and output share the embeddings.

    Dropout is a function of its layers, not a module that an adapter could take the place of. A decoder of MASS (Song
    et al. 2019), which has the positions of the fragment in its row, is this one.
    """

    paper = "arXiv:1910.13461"

    offers = frozenset({Ability.ENCODER_DECODER})
    tiny: ClassVar[Mapping[str, int]] = {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 2,
        "decoder_attention_heads": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64,
    }  # fmt: skip
    width = "d_model"
    stacks: ClassVar[Mapping[str, LayerNames]] = {
        "encoder.layers": LayerNames("encoder_layers", _FEED_FORWARD, _ATTENTION),
        "decoder.layers": LayerNames("decoder_layers", _FEED_FORWARD, _ATTENTION),
    }
    positions = "max_position_embeddings"
    # decoding starts with the token that ends a text (code of Lewis et al. 2019)
    ids: ClassVar[Mapping[str, str]] = {
        **Architecture.ids,
        "decoder_start_token_id": "end",
        "forced_eos_token_id": "end",
    }
    embedding_tables = ("shared", "encoder.embed_positions", "decoder.embed_positions")
    normalisation = (
        "self_attn_layer_norm",
        "encoder_attn_layer_norm",
        "final_layer_norm",
        "layernorm_embedding",
    )
