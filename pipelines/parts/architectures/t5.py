"""T5 (Raffel et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures import Architecture, AttentionNames, LayerNames
from pipelines.vocabulary import Ability

_ATTENTION = AttentionNames(*(f"layer.0.SelfAttention.{one}" for one in "qkvo"))


class T5(Architecture, name="t5"):
    """An encoder-decoder with relative positions, whose halves share the embeddings."""

    paper = "arXiv:1910.10683"

    offers = frozenset({Ability.ENCODER_DECODER})
    tiny: ClassVar[Mapping[str, int]] = {
        "d_model": 32, "d_kv": 16, "d_ff": 64, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 2,
    }  # fmt: skip
    width = "d_model"
    stacks: ClassVar[Mapping[str, LayerNames]] = {
        "encoder.block": LayerNames(
            "num_layers",
            ("layer.1.DenseReluDense.wi", "layer.1.DenseReluDense.wo"),
            _ATTENTION,
            ("layer.0.dropout", "layer.1.dropout"),
        ),
        "decoder.block": LayerNames(
            "num_decoder_layers",
            ("layer.2.DenseReluDense.wi", "layer.2.DenseReluDense.wo"),
            _ATTENTION,
            ("layer.0.dropout", "layer.1.dropout", "layer.2.dropout"),
        ),
    }
    # decoding starts with the padding token (code of Raffel et al. 2019)
    ids: ClassVar[Mapping[str, str]] = {"pad_token_id": "pad", "eos_token_id": "eos", "decoder_start_token_id": "pad"}
    embedding_tables = ("shared",)
    normalisation = ("layer_norm", "final_layer_norm")
