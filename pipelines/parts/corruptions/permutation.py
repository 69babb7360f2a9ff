"""Prediction in a random factorisation order (Yang et al. 2019, XLNet §2.2–2.3, appendix A.7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.vocabulary import Field


class Permutation(Corruption, name="permutation"):
    """Select tokens to predict, and a random order of prediction: each attends to the context and to those before it.

    Tokens are not replaced; PERMUTATION_MASK states which attend to which. The context is every token that is not
    predicted, including special ones: all tokens attend to it, and it attends to no predicted token, so that nothing
    leaks through it. The whole row is permuted, which suits consecutive rows without overlap: the memory of a row has
    no information on the next.

    Every row has round(L / context) predicted tokens. One span of 1 to `longest` tokens is placed in each `context`
    times its length (appendix A.7), then random ones are dropped, or single tokens added, until the number is right.
    Special tokens are predicted only in rows with too few others.
    """

    paper = "arXiv:1906.08237"
    provides = frozenset({Field.PERMUTATION_MASK, Field.TARGET_MAPPING, Field.MASKED_LABELS})

    context: float = Option(6, gt=1)
    """Tokens per predicted token: K of the paper."""
    longest: int = Option(5, ge=1)
    """Maximum number of tokens of a predicted span."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        """`batch` with PERMUTATION_MASK, TARGET_MAPPING [B, T, L] and, in the same order, MASKED_LABELS [B·T].

        Without MASKED_POSITIONS: these imply that the tokens are hidden in INPUT_IDS, and here they are not.
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
            Field.PERMUTATION_MASK: permutation_mask(random.random((rows, length), dtype=np.float32), predicted),
            Field.TARGET_MAPPING: mapping,
            Field.MASKED_LABELS: np.take_along_axis(clean, chosen, axis=1).ravel(),
        }

    def _ranks(self, ordinary: NDArray[np.bool_], random: np.random.Generator) -> NDArray[np.float64]:
        """float64 [B, L]: priority of selection, lowest first: in [0, 1) tokens of spans, span by span in random order,
        in [1, 2) other ordinary tokens, in [2, 3) special tokens."""
        rows, length = ordinary.shape
        most = -(-length // max(1, int(self.context)))  # maximum number of spans of a row, all single tokens
        sizes = random.integers(1, self.longest + 1, size=(rows, most))
        areas = (sizes * self.context).astype(np.int64)
        begins = np.cumsum(areas, axis=1) - areas
        begins += (random.random((rows, most)) * (areas - sizes + 1)).astype(np.int64)
        ranks = random.random((rows, length)) + np.where(ordinary, 1, 2)
        positions = begins[:, :, None] + np.arange(self.longest)
        within = (np.arange(self.longest) < sizes[:, :, None]) & (positions < length)
        row, _, _ = np.nonzero(within)
        # tokens of a span stay together: their priorities differ by less than the precision of the span's draw
        priorities = random.random((rows, most), dtype=np.float32)[:, :, None] + 1e-9 * np.arange(self.longest)
        position, priority = positions[within], priorities[within]
        inside = ordinary[row, position]
        ranks[row[inside], position[inside]] = priority[inside]
        return ranks


def permutation_mask(order: NDArray[np.float32], predicted: NDArray[np.bool_]) -> NDArray[np.float32]:
    """float32 [B, L, L]: 1 where token i must not attend to token j: j is predicted, and not before i.

    `order` [B, L] is each token's non-negative key in the factorisation order; only the order of predicted tokens
    matters. A predicted token does not attend to itself, a context token attends to no predicted one.
    """
    query = np.where(predicted, order, np.float32(-1))
    key = np.where(predicted, order, np.float32(-2))
    return np.less_equal(query[:, :, None], key[:, None, :]).astype(np.float32)
