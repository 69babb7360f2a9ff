"""Prediction in a random factorisation order (Yang et al. 2019, XLNet §2.2–2.3, appendix A.7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.vocabulary import Field


class Permutation(Corruption, name="permutation"):
    """Choose tokens to be predicted, and a random order in which they are: each sees the context and those before it.

    The tokens stay as they are; who may see whom is in PERMUTATION_MASK. Context is every token that is not predicted,
    special ones too: all see it, and it sees no predicted token, so nothing leaks through it. The whole row is permuted,
    which suits rows that follow each other without overlap: memory of a row never saw the next.

    Every row has round(L / context) predicted tokens. Spans of 1 to `longest` tokens are laid one in each `context` times
    its length (appendix A.7), then random ones are given up, or single tokens added, until the number is right. A special
    token is predicted only in a row that has too few others.
    """

    paper = "arXiv:1906.08237"
    provides = frozenset({Field.PERMUTATION_MASK, Field.TARGET_MAPPING, Field.MASKED_LABELS})

    context: float = Option(6, gt=1)
    """One token in so many is predicted: K of the paper."""
    longest: int = Option(5, ge=1)
    """Tokens of the longest span of predicted tokens."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        """`batch` with PERMUTATION_MASK, TARGET_MAPPING [B, T, L] and, in its order, MASKED_LABELS [B·T].

        No MASKED_POSITIONS: what reads those expects tokens that cannot be seen, and these can.
        """
        clean = batch[Field.INPUT_IDS]
        rows, length = clean.shape
        count = max(1, round(length / self.context))
        ranks = self._ranks(is_ordinary(clean, tokens), random)
        chosen = np.sort(np.argpartition(ranks, count - 1, axis=1)[:, :count], axis=1)
        predicted = np.zeros((rows, length), dtype=np.bool_)
        np.put_along_axis(predicted, chosen, True, axis=1)
        mapping = np.zeros((rows, count, length), dtype=np.float32)
        np.put_along_axis(mapping, chosen[:, :, None], 1, axis=2)
        return {
            **batch,
            Field.PERMUTATION_MASK: hidden(random.random((rows, length), dtype=np.float32), predicted),
            Field.TARGET_MAPPING: mapping,
            Field.MASKED_LABELS: np.take_along_axis(clean, chosen, axis=1).ravel(),
        }

    def _ranks(self, ordinary: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.float64]:
        """float64 [B, L]: the lower, the sooner a token is predicted: in [0, 1) tokens of spans, span by span in random
        order, in [1, 2) other ordinary tokens, in [2, 3) special ones."""
        rows, length = ordinary.shape
        most = -(-length // max(1, int(self.context)))  # spans of a row when all are single tokens
        sizes = random.integers(1, self.longest + 1, size=(rows, most))
        areas = (sizes * self.context).astype(np.int64)
        begins = np.cumsum(areas, axis=1) - areas
        begins += (random.random((rows, most)) * (areas - sizes + 1)).astype(np.int64)
        ranks = random.random((rows, length)) + np.where(ordinary, 1, 2)
        places = begins[:, :, None] + np.arange(self.longest)
        within = (np.arange(self.longest) < sizes[:, :, None]) & (places < length)
        row, _, _ = np.nonzero(within)
        # tokens of a span keep together: they differ only beyond the precision of the span's own number
        sooner = random.random((rows, most), dtype=np.float32)[:, :, None] + 1e-9 * np.arange(self.longest)
        at, numbers = places[within], sooner[within]
        inside = ordinary[row, at]
        ranks[row[inside], at[inside]] = numbers[inside]
        return ranks


def hidden(order: NDArray[np.float32], predicted: NDArray[np.bool_]) -> NDArray[np.float32]:
    """float32 [B, L, L]: 1 where token i must not see token j: j is predicted, and not before i.

    `order` [B, L] is each token's place in the factorisation order, not negative; only its order matters, and only among
    the predicted. A predicted token does not see itself, a token of the context sees no predicted one.
    """
    looks = np.where(predicted, order, np.float32(-1))
    seen = np.where(predicted, order, np.float32(-2))
    return np.less_equal(looks[:, :, None], seen[:, None, :]).astype(np.float32)
