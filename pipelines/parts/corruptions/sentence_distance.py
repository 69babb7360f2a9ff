"""How far two segments are from each other (Sun et al. 2019, ERNIE 2.0 §4.2.2, sentence distance)."""

from __future__ import annotations

import numpy as np
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.row_rearrangement import (
    ROW_LABELS,
    UNLABELLED,
    RowDivision,
    other_rows,
    row_texts,
)
from pipelines.vocabulary import Field

ADJACENT, SAME_DOCUMENT, ELSEWHERE = range(3)


class SentenceDistance(RowDivision, name="sentence_distance"):
    """Divide each row into two segments: 0 where they are adjacent, 1 where text of the same document between them is
    left out, 2 where the second is of other documents; a third of the rows each.

    As many tokens are left out of every row, at its end where it is none between the segments; padding takes their
    place. A row that holds the end of a document, or is short, has no label.
    """

    paper = "arXiv:1907.12412"
    provides = RowDivision.provides | {Field.ATTENTION_MASK, Field.TOKEN_TYPE_IDS}

    gap: float = Option(0.25, gt=0, le=0.5)
    """Share of a row's ordinary tokens that are left out."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        ids, documents = batch[Field.INPUT_IDS], batch[Field.DOCUMENTS]
        rows, length = ids.shape
        columns = np.arange(length)
        begin, end, count, whole = row_texts(ids, tokens)
        gap = np.where(whole[:, None], np.rint(self.gap * count).astype(np.int64), 0)
        # the token that divides the row, between a third and two thirds of what is left
        split = begin + np.floor((count - gap) * (1 + random.random((rows, 1))) / 3).astype(np.int64)
        chosen = random.integers(3, size=rows)
        source = other_rows(documents, whole & (chosen == ELSEWHERE), random)
        alone = source == np.arange(rows)
        label = np.where((chosen == ELSEWHERE) & alone, ADJACENT, chosen)
        second = (columns > split) & (columns < end - gap) & whole[:, None]
        between = np.where(label == ADJACENT, 0, 1)[:, None] * gap
        # beyond the second segment, what ends the row moves up
        column = columns + np.where(second, between, np.where(columns >= end - gap, gap, 0))
        row = np.where(second, source[:, None], np.arange(rows)[:, None])
        result = self.moved(batch, row, np.minimum(column, length - 1))
        padding = columns >= length - gap
        divides = (columns == split) & whole[:, None]
        for name in (Field.INPUT_IDS, Field.ORIGINAL_IDS):
            result[name] = np.where(padding, tokens.pad, np.where(divides, tokens.end, result[name]))
        return {
            **result,
            Field.DOCUMENTS: np.where(padding, -1, result[Field.DOCUMENTS]),
            Field.ATTENTION_MASK: (~padding).astype(np.int64),
            Field.TOKEN_TYPE_IDS: ((columns > split) & whole[:, None] & ~padding).astype(np.int64),
            ROW_LABELS: np.where(whole, label, UNLABELLED),
        }
