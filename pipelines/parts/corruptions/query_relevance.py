"""How a text is related to words that ask for it (Sun et al. 2019, ERNIE 2.0 §4.2.3, relevance of query and title)."""

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

OF_TEXT, OF_DOCUMENT, ELSEWHERE = range(3)


class QueryRelevance(RowDivision, name="query_relevance"):
    """Put tokens in random order before the text of each row: 0 where they are of this text, 1 of what stands before it
    in the document, 2 of other documents; a third of the rows each.

    They stand for queries, whose strong, weak and missing relevance the paper takes from the log of a search engine. A
    row that holds the end of a document, or is short, has no label.
    """

    paper = "arXiv:1907.12412"
    provides = RowDivision.provides | {Field.TOKEN_TYPE_IDS}

    share: float = Option(0.15, gt=0, le=0.3)
    """Share of a row's ordinary tokens in the query."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        ids, documents = batch[Field.INPUT_IDS], batch[Field.DOCUMENTS]
        rows, length = ids.shape
        columns = np.arange(length)
        begin, end, count, whole = row_texts(ids, tokens)
        size = np.maximum(np.rint(self.share * count), 1).astype(np.int64)
        split = begin + size
        drawn_label = random.integers(3, size=rows)
        # a row from elsewhere begins its text in the same column
        same = (begin == begin.T) & whole[None, :]
        source = other_rows(documents, whole & (drawn_label == ELSEWHERE), random)
        fits = same[np.arange(rows), source] & (source != np.arange(rows))
        source = np.where(fits, source, np.arange(rows))
        label = np.where((drawn_label == ELSEWHERE) & ~fits, OF_TEXT, drawn_label)
        # random tokens of the text after the query, or all before it, in random order
        keys = random.random((rows, length))
        drawn = np.where(
            label[:, None] == OF_TEXT, (columns > split) & (columns < end), (columns >= begin) & (columns < split)
        )
        keys[~drawn] = 2
        chosen = np.take_along_axis(np.argsort(keys, axis=1), np.clip(columns - begin, 0, length - 1), axis=1)
        query = (columns >= begin) & (columns < split) & whole[:, None]
        result = self.moved(
            batch,
            np.where(query, source[:, None], np.arange(rows)[:, None]),
            np.where(query, chosen, columns),
        )
        divides = (columns == split) & whole[:, None]
        for name in (Field.INPUT_IDS, Field.ORIGINAL_IDS):
            result[name] = np.where(divides, tokens.end, result[name])
        return {
            **result,
            Field.TOKEN_TYPE_IDS: ((columns > split) & whole[:, None]).astype(np.int64),
            ROW_LABELS: np.where(whole, label, UNLABELLED),
        }
