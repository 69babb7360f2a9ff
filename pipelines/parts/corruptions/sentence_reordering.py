"""Segments in another order, which is to be told (Sun et al. 2019, ERNIE 2.0 §4.2.2, sentence reordering)."""

from __future__ import annotations

from math import factorial

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.row_rearrangement import ROW_LABELS, UNLABELLED, RowRearrangement, text_edges
from pipelines.vocabulary import Field


class SentenceReordering(RowRearrangement, name="sentence_reordering"):
    """Cut the text of each row at random into one to `most` segments, in a random order: the class is how many
    there are and in which order, one of Σ n! for n = 1 … `most`.

    Rows of fewer than two tokens for each segment have no label.
    """

    paper = "arXiv:1907.12412"

    most: int = Option(3, ge=2, le=5)
    """Largest number of segments; m of the paper."""

    @property
    def classes(self) -> int:
        return sum(factorial(number) for number in range(1, self.most + 1))

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        ids = batch[Field.INPUT_IDS]
        rows, length = ids.shape
        columns = np.arange(length)
        begin, end = text_edges(is_ordinary(ids, tokens))
        enough = (end - begin)[:, 0] >= 2 * self.most
        number = np.where(enough, random.integers(1, self.most + 1, size=rows), 1)[:, None]
        # the first columns by random keys are where new segments begin
        keys = random.random((rows, length))
        keys[(columns <= begin) | (columns >= end)] = 2
        cuts = np.argsort(np.argsort(keys, axis=1), axis=1) < number - 1
        segment: NDArray[np.int64] = np.cumsum(cuts, axis=1)
        # rank of each segment in the new order; those that a row does not have stay behind
        draws = random.random((rows, self.most))
        draws[np.arange(self.most) >= number] = 2
        order = np.argsort(draws, axis=1, kind="stable")
        rank = np.argsort(order, axis=1)
        position = np.take_along_axis(rank, segment, axis=1)
        position = np.where(columns < begin, -1, np.where(columns >= end, self.most, position))
        source = np.argsort(position, axis=1, kind="stable")
        result = self.moved(batch, np.arange(rows)[:, None], source)
        smaller = np.array([sum(factorial(one) for one in range(1, n)) for n in range(1, self.most + 1)])
        label = smaller[number[:, 0] - 1] + self._index(order, number)
        return {**result, ROW_LABELS: np.where(enough, label, UNLABELLED)}

    def _index(self, order: NDArray[np.int64], number: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64 [B]: index of the order of the first `number` [B, 1] segments among all orders, lexicographically."""
        index = np.zeros(len(order), dtype=np.int64)
        factorials = np.array([factorial(one) for one in range(self.most + 1)])
        for at in range(self.most):
            smaller_later = (order[:, at + 1 :] < order[:, at : at + 1]).sum(1)
            counted = at < number[:, 0]
            index += np.where(counted, smaller_later * factorials[np.maximum(number[:, 0] - 1 - at, 0)], 0)
        return index
