"""Sentence order: half of the pairs of segments are in the opposite order (Lan et al. 2019, ALBERT §3.1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.segment_pairs import SegmentPairs
from pipelines.vocabulary import Field


class SegmentOrder(SegmentPairs, name="segment_order"):
    """Divide each row into two segments; half of the time the second comes before the first.

    Both are of the same text, so that their topic says nothing of their order. Objective `next_sentence` predicts it:
    the loss is ALBERT's, its label 1 for segments in the opposite order.
    """

    paper = "arXiv:1909.11942"

    exchanged: float = Option(0.5, gt=0, lt=1)
    """Share of the pairs whose segments are in the opposite order."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        splits = self.splits(batch, tokens, random)
        exchanged = (random.random(len(splits)) < self.exchanged) & (splits >= 0)
        kept = {name: value for name, value in batch.items() if name not in self.replaces}
        moved, splits = exchange_segments(kept, splits, exchanged, is_ordinary(batch[Field.INPUT_IDS], tokens))
        return self.divided(moved, splits, tokens, exchanged.astype(np.int64))


def exchange_segments(
    batch: Arrays, splits: NDArray[np.int64], exchanged: NDArray[np.bool_], ordinary: NDArray[np.bool_]
) -> tuple[Arrays, NDArray[np.int64]]:
    """`batch` with the two segments of the rows in `exchanged` [B] in the opposite order, and the splits [B] then.

    Token ids, documents and channels move. What divides a row stays between its segments, positions stay where they
    are, and so do the special tokens before the first and after the last of the `ordinary` tokens [B, L].
    """
    columns = np.arange(ordinary.shape[1])
    begin = ordinary.argmax(1)[:, None]
    end = (ordinary.shape[1] - ordinary[:, ::-1].argmax(1))[:, None]
    split = splits[:, None]
    divided = begin + end - 1 - split
    source = np.where(columns < divided, columns - begin + split + 1, columns - divided - 1 + begin)
    source = np.where(columns == divided, split, source)
    source = np.where(exchanged[:, None] & (columns >= begin) & (columns < end), source, columns)
    moved = {
        name: np.take_along_axis(value, source.reshape(*source.shape, *(1,) * (value.ndim - 2)), axis=1)
        for name, value in batch.items()
        if name in (Field.INPUT_IDS, Field.ORIGINAL_IDS, Field.DOCUMENTS) or name.is_channel
    }
    return {**batch, **moved}, np.where(exchanged, divided[:, 0], splits)
