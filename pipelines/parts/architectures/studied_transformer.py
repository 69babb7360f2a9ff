"""The encoder of studies of attention (Vaswani et al. 2017)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures import Architecture, LayerNames
from pipelines.parts.architectures.bert import Bert
from pipelines.vocabulary import Ability


class StudiedTransformer(Architecture, name="studied_transformer"):
    """BERT's layers; `scaled_products` and `position_kind` (learned, sinusoidal, relative, none) are keys of its
    configuration, and all kinds have the same maximum length."""

    paper = "arXiv:1706.03762"

    # scores may be unscaled, or those of relative positions too
    offers = Bert.offers - {Ability.ATTENTION_SCORES}
    tiny: ClassVar[Mapping[str, int]] = Bert.tiny
    # with relative positions, values have a part of their own for each distance: no head can be removed
    stacks: ClassVar[Mapping[str, LayerNames]] = {
        path: names._replace(attention=None, heads=None) for path, names in Bert.stacks.items()
    }
    positions = Bert.positions
    token_types = Bert.token_types
    # that of positions only where they are learned
    embedding_tables = Bert.embedding_tables
    embedding_sum = Bert.embedding_sum
    masked_lm: ClassVar[tuple[str, ...]] = Bert.masked_lm
    segment_pairs: ClassVar[tuple[str, ...]] = Bert.segment_pairs
    pooler: ClassVar[tuple[str, ...]] = Bert.pooler

    def register(self) -> None:
        from pipelines.networks.studied_transformer import register_auto_classes

        register_auto_classes()
