"""ELECTRA (Clark et al. 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pipelines.parts.architectures.bert import Bert
from pipelines.vocabulary import Ability


class Electra(Bert, name="electra"):
    """BERT's layers below a discriminator; the embeddings may be smaller than the hidden states."""

    paper = "arXiv:2003.10555"

    offers = Bert.offers - {Ability.SEGMENT_PAIRS} | {Ability.DISCRIMINATOR}
    tiny: ClassVar[Mapping[str, int]] = {**Bert.tiny, "embedding_size": 16}
    masked_lm: ClassVar[tuple[str, ...]] = ("generator_predictions", "generator_lm_head")
    segment_pairs: ClassVar[tuple[str, ...]] = ()
    pooler: ClassVar[tuple[str, ...]] = ()
