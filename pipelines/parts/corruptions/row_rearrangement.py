"""Base class of corruptions that rearrange the tokens of rows and say how, as a class of each row (Sun et al. 2019,
ERNIE 2.0 §4.2.2, §4.2.3)."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.vocabulary import PER_MASKED_POSITION, Field

ROW_LABELS = Field.of_rows("row_labels")
"""int64 [B]: the class of each row, −100 where it has none."""
UNLABELLED = -100
SHORTEST = 12
"""Fewest ordinary tokens of a row that is divided."""
MOVED = frozenset({Field.INPUT_IDS, Field.ORIGINAL_IDS, Field.DOCUMENTS})
"""Fields that move with their tokens, as channels do."""


class RowRearrangement(Corruption):
    """Rows of tokens of their own and of other rows, with a label of what was done; −100 for rows left as they are."""

    needs = frozenset({Field.INPUT_IDS, Field.ORIGINAL_IDS, Field.DOCUMENTS})
    provides = frozenset({ROW_LABELS, Field.ORIGINAL_IDS, Field.DOCUMENTS})
    replaces = PER_MASKED_POSITION | {Field.PERMUTATION_MASK, Field.TARGET_MAPPING, Field.PARTNER}
    pairs_segments = True

    def moved(self, batch: Arrays, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Arrays:
        """`batch` without what it `replaces`, whose token [b, l] is the one at `rows` [B, L] and `columns` [B, L]."""
        kept = {name: value for name, value in batch.items() if name not in self.replaces}
        taken = {name: value[rows, columns] for name, value in kept.items() if name in MOVED or name.is_channel}
        return {**kept, **taken}


class RowDivision(RowRearrangement):
    """Rows divided into two segments, by token types, with one of three classes of how these are related."""

    classes: ClassVar[int] = 3

    @property
    def token_types(self) -> int:
        return 2


class TextsOfRows(NamedTuple):
    """The text of each of B rows, between special tokens at both ends."""

    begin: NDArray[np.int64]
    """[B, 1]: column of its first token."""
    end: NDArray[np.int64]
    """[B, 1]: column of what follows its last one."""
    size: NDArray[np.int64]
    """[B, 1]: number of columns."""
    whole: NDArray[np.bool_]
    """[B]: whether the row can be divided: it is one text, of `SHORTEST` tokens or more."""


def row_texts(ids: NDArray[np.int64], tokens: TokenIds) -> TextsOfRows:
    """The text of each row of `ids` [B, L]."""
    ordinary = is_ordinary(ids, tokens)
    begin, end = text_edges(ordinary)
    count = end - begin
    return TextsOfRows(begin, end, count, (ordinary.sum(1) == count[:, 0]) & (count[:, 0] >= SHORTEST))


def text_edges(ordinary: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """int64 [B, 1] each: column of the first of the `ordinary` [B, L] tokens, and of what follows the last; equal where
    a row has none."""
    first = ordinary.argmax(1)
    last = ordinary.shape[1] - ordinary[:, ::-1].argmax(1)
    return first[:, None], np.where(ordinary.any(1), last, first)[:, None]


def other_rows(
    documents: NDArray[np.int64], chosen: NDArray[np.bool_], random: np.random.Generator
) -> NDArray[np.int64]:
    """int64 [B]: for each row that is `chosen` [B] a random one whose `documents` [B, L] are all others, itself where
    there is none or where it is not chosen.

    The documents of a row ascend; padding at its end has −1.
    """
    rows = np.arange(len(documents))
    begins, ends = documents[:, 0], documents.max(1)
    others = (begins[None, :] > ends[:, None]) | (ends[None, :] < begins[:, None])
    draws = np.where(others, random.random(others.shape, dtype=np.float32), np.float32(-1))
    return np.where(chosen & others.any(1), draws.argmax(1), rows)
