"""NEZHA (Wei et al. 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures import Architecture, LayerNames
from pipelines.parts.architectures.bert import Bert
from pipelines.vocabulary import Ability


class Nezha(Architecture, name="nezha"):
    """BERT's layers with sines and cosines of relative distances in keys and values (§2.2), and without positions of
    its input: rows may be longer than those of pre-training."""

    paper = "arXiv:1909.00204"

    # the scores of attention are not those of query and key alone
    offers = Bert.offers - {Ability.ATTENTION_SCORES}
    tiny: ClassVar[Mapping[str, int]] = Bert.tiny
    # values have a part of their own for each distance, so that a head whose projection is zero still says something
    stacks: ClassVar[Mapping[str, LayerNames]] = {
        path: names._replace(attention=None, heads=None) for path, names in Bert.stacks.items()
    }
    token_types = Bert.token_types
    embedding_tables: ClassVar[tuple[str, ...]] = ("embeddings.word_embeddings", "embeddings.token_type_embeddings")
    embedding_sum = Bert.embedding_sum
    masked_lm: ClassVar[tuple[str, ...]] = Bert.masked_lm
    segment_pairs: ClassVar[tuple[str, ...]] = Bert.segment_pairs
    pooler: ClassVar[tuple[str, ...]] = Bert.pooler

    def register(self) -> None:
        from pipelines.networks.nezha import register_auto_classes

        register_auto_classes()
