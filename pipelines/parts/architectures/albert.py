"""ALBERT (Lan et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures import Architecture, AttentionNames, LayerNames, RemovableHeads
from pipelines.parts.architectures.bert import Bert
from pipelines.vocabulary import Ability


class Albert(Architecture, name="albert"):
    """BERT with token embeddings of `embedding_size`, projected to the hidden size (§3.1, factorised embeddings), and
    one layer whose weights all `num_hidden_layers` applications share (§3.1, cross-layer sharing).

    The list of layers holds the groups of shared layers, one by default; strategies and compressions see that one.
    """

    paper = "arXiv:1909.11942"

    # the scores of attention are computed of the list of layers, which here has fewer than there are states
    offers = Bert.offers - {Ability.ATTENTION_SCORES, Ability.LAYERED}  # one layer, several times
    tiny: ClassVar[Mapping[str, int]] = {**Bert.tiny, "embedding_size": 16}
    stacks: ClassVar[Mapping[str, LayerNames]] = {
        "encoder.albert_layer_groups": LayerNames(
            "num_hidden_groups",
            ("albert_layers.0.ffn", "albert_layers.0.ffn_output"),
            AttentionNames(
                *(f"albert_layers.0.attention.{projection}" for projection in ("query", "key", "value", "dense"))
            ),
            (),  # no module of its own ends the feed-forward sub-layer
            RemovableHeads(
                tuple(f"albert_layers.0.attention.{projection}" for projection in ("query", "key", "value")),
                "albert_layers.0.attention.dense",
            ),
        )
    }
    positions = "max_position_embeddings"
    token_types = ("type_vocab_size", 2)
    embedding_tables = Bert.embedding_tables
    embedding_sum = "embeddings.LayerNorm"
    masked_lm: ClassVar[tuple[str, ...]] = ("predictions",)
    segment_pairs: ClassVar[tuple[str, ...]] = ("sop_classifier",)
    pooler: ClassVar[tuple[str, ...]] = ("pooler",)
    normalisation = ("LayerNorm", "full_layer_layer_norm")
