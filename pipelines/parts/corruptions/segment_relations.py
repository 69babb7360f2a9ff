"""Sentence order in three ways: the second segment comes after the first, before it, or from elsewhere (Wang et al.
2019, StructBERT §2.2.2)."""

from __future__ import annotations

from typing import Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.next_sentence import NextSentence
from pipelines.parts.corruptions.segment_order import exchange_segments
from pipelines.vocabulary import Field

RELATIONS = Field.of_rows("segment_relations")
"""int64 [B]: 0 where the second segment of a row follows the first, 1 where it precedes it, 2 where it is of other
documents, −100 where a row is no pair of segments."""
PRECEDES, ELSEWHERE = 1, 2


class SegmentRelations(NextSentence, name="segment_relations"):
    """Divide each row into two segments; a third of the time the second precedes the first in the text, a third of the
    time it is that of another row, of other documents.

    Where no row read together is of other documents, the second segment follows or precedes the first.
    """

    paper = "arXiv:1908.04577"
    provides = NextSentence.provides - {Field.SEGMENT_LABELS} | {RELATIONS}

    replaced: float = Option(1 / 3, gt=0, lt=1)
    """Share of the pairs whose second segment is random."""
    exchanged: float = Option(1 / 3, gt=0, lt=1)
    """Share of the pairs whose second segment precedes the first."""

    @model_validator(mode="after")
    def _some_follow(self) -> Self:
        if self.replaced + self.exchanged >= 1:
            raise ValueError("replaced and exchanged are shares of the pairs: their sum must be less than 1")
        return self

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        pairs = super().apply(batch, tokens, random)
        elsewhere = pairs.pop(Field.SEGMENT_LABELS)
        splits = np.where(elsewhere >= 0, pairs[Field.TOKEN_TYPE_IDS].argmax(1) - 1, -1)
        draws = random.random(len(splits))
        precedes = (elsewhere == 0) & (draws < self.exchanged / (1 - self.replaced))
        moved, splits = exchange_segments(pairs, splits, precedes, is_ordinary(pairs[Field.INPUT_IDS], tokens))
        result = self.divided(
            moved, splits, tokens, np.where(elsewhere == 1, ELSEWHERE, np.where(precedes, PRECEDES, 0))
        )
        result[RELATIONS] = result.pop(Field.SEGMENT_LABELS)
        return result
