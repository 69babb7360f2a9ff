"""RoBERTa (Liu et al. 2019)."""

from __future__ import annotations

from typing import ClassVar

from pipelines.parts.architectures.bert import Bert
from pipelines.vocabulary import Ability


class Roberta(Bert, name="roberta"):
    """BERT's layers; in the position table, padding has a row of its own before those of the tokens."""

    paper = "arXiv:1907.11692"

    offers = Bert.offers - {Ability.SEGMENT_PAIRS}
    positions_after_padding = True
    masked_lm: ClassVar[tuple[str, ...]] = ("lm_head",)
    segment_pairs: ClassVar[tuple[str, ...]] = ()
