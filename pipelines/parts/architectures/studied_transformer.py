"""The encoder of studies of attention (Vaswani et al. 2017)."""

from __future__ import annotations

from pipelines.parts.architectures.bert import Bert
from pipelines.parts.architectures.nezha import Nezha


class StudiedTransformer(Nezha, name="studied_transformer"):
    """BERT's layers; `scaled_products` and `position_kind` (learned, sinusoidal, relative, none) are keys of its
    configuration, and all kinds have the same maximum length.

    Heads, scores and layers are NEZHA's, since any of its networks may have relative positions or unscaled scores.
    """

    paper = "arXiv:1706.03762"

    positions = Bert.positions
    # that of positions only where they are learned
    embedding_tables = Bert.embedding_tables

    def register(self) -> None:
        from pipelines.networks.studied_transformer import register_auto_classes

        register_auto_classes()
