"""Base class of corruptions that make a pair of segments of each row: where a row is divided, and its token types
(Devlin et al. 2018, §3.1 and figure 2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.vocabulary import PER_MASKED_POSITION, Field

UNDIVIDED = -100
"""Label of a row that is no pair; torch's losses ignore it."""


class SegmentPairs(Corruption):
    """Divide each row into two segments of one document, and say in SEGMENT_LABELS whether the second continues the
    first.

    A row is divided at one of its tokens, which becomes the token that ends a document: `[CLS] A [SEP] B [SEP]`. The
    text of a document goes on without a gap but that token from A to B; further from it, a segment may hold the end of
    an earlier document or the beginning of a later one, as rows of windows do. A row without a place to divide it is
    no pair: its label is −100, and all of its tokens have the first type.
    """

    needs = frozenset({Field.INPUT_IDS, Field.ORIGINAL_IDS, Field.DOCUMENTS})
    provides = frozenset({Field.TOKEN_TYPE_IDS, Field.SEGMENT_LABELS, Field.ORIGINAL_IDS, Field.DOCUMENTS})
    replaces = PER_MASKED_POSITION | {Field.PERMUTATION_MASK, Field.TARGET_MAPPING, Field.PARTNER}
    pairs_segments = True

    shortest: float = Option(0.25, gt=0, le=0.5)
    """Share of a row's ordinary tokens in the shorter of the two segments, at least."""

    @property
    def token_types(self) -> int:
        return 2

    def divisible(self, batch: Arrays, tokens: TokenIds) -> NDArray[np.bool_]:
        """Bool [B, L]: the tokens that can divide their row."""
        documents = batch[Field.DOCUMENTS]
        ordinary = is_ordinary(batch[Field.INPUT_IDS], tokens)
        inside = np.zeros_like(ordinary)
        inside[:, 1:-1] = (
            ordinary[:, :-2] & ordinary[:, 1:-1] & ordinary[:, 2:] & (documents[:, :-2] == documents[:, 2:])
        )
        # ordinary tokens before each one, and in its row
        before: NDArray[np.int64] = np.cumsum(ordinary, axis=1) - ordinary
        counts = ordinary.sum(1, keepdims=True)
        least = np.maximum(np.rint(self.shortest * (counts - 1)), 1)
        possible: NDArray[np.bool_] = inside & (before >= least) & (counts - 1 - before >= least)
        return possible

    def splits(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> NDArray[np.int64]:
        """int64 [B]: column of the token that divides each row, drawn from those that can; −1 where none can."""
        possible = self.divisible(batch, tokens)
        draws = np.where(possible, random.random(possible.shape, dtype=np.float32), np.float32(-1))
        chosen = np.argmax(draws, axis=1)
        return np.where(possible.any(1), chosen, -1)

    def divided(self, batch: Arrays, splits: NDArray[np.int64], tokens: TokenIds, labels: NDArray[np.int64]) -> Arrays:
        """`batch` with its rows divided at `splits` [B], and `labels` [B]: 0 where the second segment continues the
        first, 1 where it does not, for the rows that are pairs."""
        columns = np.arange(batch[Field.INPUT_IDS].shape[1])
        is_pair = splits >= 0
        end = (columns == splits[:, None]) & is_pair[:, None]
        return {
            **batch,
            Field.INPUT_IDS: np.where(end, tokens.end, batch[Field.INPUT_IDS]),
            Field.ORIGINAL_IDS: np.where(end, tokens.end, batch[Field.ORIGINAL_IDS]),
            Field.DOCUMENTS: batch[Field.DOCUMENTS],
            Field.TOKEN_TYPE_IDS: ((columns > splits[:, None]) & is_pair[:, None]).astype(np.int64),
            Field.SEGMENT_LABELS: np.where(is_pair, labels, UNDIVIDED),
        }
