"""Base class of corruptions that rewrite rows: they move, remove or insert tokens, and a decoder restores the text
(Lewis et al. 2019, BART §2.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field


class Rewriting(Corruption):
    """Rewrite the ordinary tokens of each row; `original_as_target` gives the decoder the row as it was.

    A row keeps its width: where it has fewer tokens, padding follows them, which ATTENTION_MASK marks. Special tokens
    stay in the input. Several can follow one another.
    """

    may_read = frozenset({Field.ATTENTION_MASK})
    provides = frozenset({Field.ATTENTION_MASK})
    replaces = frozenset(
        {
            Field.TOKEN_TYPE_IDS,
            Field.POSITION_IDS,
            Field.DOCUMENTS,
            Field.MASKED_POSITIONS,
            Field.MASKED_LABELS,
            Field.SPAN_EDGES,
            Field.SPAN_OFFSETS,
            Field.PERMUTATION_MASK,
            Field.TARGET_MAPPING,
        }
    )

    def rearranged(self, batch: Arrays, source: NDArray[np.int64]) -> Arrays:
        """`batch` whose column j holds what column `source` [B, L] j held."""
        moved = {name: _taken(value, source) for name, value in self._moving(batch).items()}
        return {**self._kept(batch), **moved, Field.ATTENTION_MASK: _taken(attention_mask(batch), source)}

    def selected(
        self,
        batch: Arrays,
        ids: NDArray[np.int64],
        columns: NDArray[np.int64],
        keep: NDArray[np.bool_],
        tokens: TokenIds,
    ) -> Arrays:
        """`batch` with the tokens `ids` [B, S] that `keep` has, in their order, and padding up to the old width L.

        `columns` [B, S] are those whose channels they have. At most L of a row are kept.
        """
        width = batch[Field.INPUT_IDS].shape[1]
        order = np.argsort(~keep, axis=1, kind="stable")[:, :width]
        real = _taken(_taken(attention_mask(batch), columns), order)
        real[np.arange(width) >= keep.sum(1)[:, None]] = 0
        source = _taken(columns, order)
        moved = {name: _taken(value, source) for name, value in self._moving(batch).items()}
        moved[Field.INPUT_IDS] = np.where(real == 1, _taken(ids, order), tokens.pad)
        return {**self._kept(batch), **moved, Field.ATTENTION_MASK: real}

    def _moving(self, batch: Arrays) -> Arrays:
        """The fields with a value for each token of a row."""
        return {name: value for name, value in batch.items() if name == Field.INPUT_IDS or name.is_channel}

    def _kept(self, batch: Arrays) -> Arrays:
        return {name: value for name, value in batch.items() if name not in self.replaces}


def attention_mask(batch: Arrays) -> NDArray[np.int64]:
    """int64 [B, L]: 1 for a token, 0 for padding."""
    if Field.ATTENTION_MASK in batch:
        return batch[Field.ATTENTION_MASK]
    return np.ones_like(batch[Field.INPUT_IDS])


def text_bounds(ordinary: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """int64 [B, 1] twice: the first of the `ordinary` tokens [B, L] of each row, and the column after the last; equal
    where there is none."""
    begin = ordinary.argmax(1)[:, None]
    end = np.where(ordinary.any(1), ordinary.shape[1] - ordinary[:, ::-1].argmax(1), 0)[:, None]
    return np.minimum(begin, end), end


def _taken(values: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
    """`values` [B, L, …] at `columns` [B, S] of each row: [B, S, …]."""
    return np.take_along_axis(values, columns.reshape(*columns.shape, *(1,) * (values.ndim - 2)), axis=1)
