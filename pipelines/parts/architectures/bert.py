"""BERT (Devlin et al. 2018)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures import Architecture, AttentionNames, LayerNames, RemovableHeads
from pipelines.vocabulary import Ability


class Bert(Architecture, name="bert"):
    """An encoder with learned positions and token types."""

    paper = "arXiv:1810.04805"

    offers = frozenset(
        {
            Ability.BIDIRECTIONAL,
            Ability.SEGMENT_PAIRS,
            Ability.ONE_STACK,
            Ability.LAYERED,
            Ability.WITHIN_DOCUMENTS,
            Ability.ATTENTION_SCORES,
            Ability.VISIBILITY,
        }
    )
    tiny: ClassVar[Mapping[str, int]] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    }
    stacks: ClassVar[Mapping[str, LayerNames]] = {
        "encoder.layer": LayerNames(
            "num_hidden_layers",
            ("intermediate.dense", "output.dense"),
            AttentionNames(
                "attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"
            ),
            ("attention.output.dropout", "output.dropout"),
            RemovableHeads(
                ("attention.self.query", "attention.self.key", "attention.self.value"), "attention.output.dense"
            ),
        )
    }
    positions = "max_position_embeddings"
    token_types = ("type_vocab_size", 2)
    embedding_tables = (
        "embeddings.word_embeddings",
        "embeddings.position_embeddings",
        "embeddings.token_type_embeddings",
    )
    embedding_sum = "embeddings.LayerNorm"
    masked_lm: ClassVar[tuple[str, ...]] = ("cls.predictions",)
    segment_pairs: ClassVar[tuple[str, ...]] = ("cls.seq_relationship",)
    pooler: ClassVar[tuple[str, ...]] = ("pooler",)
