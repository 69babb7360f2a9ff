"""Masking of contiguous spans of geometric length (Joshi et al. 2019, SpanBERT §3.1), drawn anew each time a text is
read."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import Masking, is_ordinary, word_beginnings
from pipelines.vocabulary import Field


class SpanMask(Masking, name="span_mask"):
    """Select spans of whole words until a share of each row's tokens is to be predicted, and provide their edges.

    Lengths are geometric up to `longest`, 3.8 words on average. A row's spans never touch and are placed uniformly:
    each has visible tokens on both sides, and a row's first and last token count as special. A span that meets a
    special token continues after it as a separate span. The last span drawn stops before the word that would exceed
    round(rate · ordinary tokens), but a row's first word is selected whole; without word starts every token is a word
    and the number selected is exact. All tokens of a span are masked, randomised or kept together, as in §3.1.
    """

    paper = "arXiv:1907.10529"
    may_read = frozenset({Field.WORD_STARTS})
    provides = frozenset({Field.MASKED_POSITIONS, Field.MASKED_LABELS, Field.SPAN_EDGES, Field.SPAN_OFFSETS})

    rate: float = Option(0.15, gt=0, le=0.5)
    """Share of a row's ordinary tokens to predict; spans that never touch cannot cover much more than half."""
    p: float = Option(0.2, gt=0, lt=1)
    """Probability that a span ends after each of its words."""
    longest: int = Option(10, ge=1)
    """Maximum number of words of a span; longer draws are repeated."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        inside = is_ordinary(batch[Field.INPUT_IDS], tokens)
        inside[:, [0, -1]] = False
        rows = len(inside)
        budget = self.budget(inside)
        starts = word_beginnings(batch, inside) if Field.WORD_STARTS in batch else inside
        word = np.cumsum(starts) - 1  # of each token
        words = starts.sum(1)
        sizes = np.bincount(word[inside.ravel()], minlength=int(words.sum()))

        lengths = self._lengths(budget, words, random)
        first_words = _first_words(lengths, words, random) + (np.cumsum(words) - words)[:, None]
        # the words of all spans, row by row, in the order in which the spans were drawn
        spans = lengths[lengths > 0]
        taken = np.repeat(first_words[lengths > 0] - (np.cumsum(spans) - spans), spans) + np.arange(spans.sum())
        owner = np.repeat(np.arange(rows), lengths.sum(1))
        first = np.flatnonzero(np.diff(owner, prepend=-1))
        total = np.cumsum(sizes[taken])
        before = np.zeros(rows, dtype=np.int64)
        before[owner[first]] = total[first] - sizes[taken[first]]
        fits = total - before[owner] <= budget[owner]
        fits[first] = True

        chosen = np.zeros(len(sizes), dtype=np.bool_)
        chosen[taken[fits]] = True
        positions = np.flatnonzero(inside.ravel())
        positions = positions[chosen[word[positions]]]
        begins = np.diff(positions, prepend=-2) != 1
        span = np.cumsum(begins) - 1
        start = positions[begins]
        edges = np.stack([start - 1, start + np.bincount(span, minlength=len(start))], axis=1)
        return {
            **self.mask_positions(batch, positions, tokens, random, together=span),
            Field.SPAN_EDGES: edges[span],
            Field.SPAN_OFFSETS: positions - start[span],
        }

    def _lengths(
        self, budget: NDArray[np.int64], words: NDArray[np.int64], random: np.random.Generator
    ) -> NDArray[np.int64]:
        """int64 [B, S]: number of words of each span, in total the tokens of the budget if they fit; 0 after the last
        span."""
        draws = random.random((len(budget), int(budget.max())))
        lengths = 1 + np.searchsorted(_distribution(self.p, self.longest), draws, side="right")
        before = np.cumsum(lengths, axis=1) - lengths
        room = words[:, None] - before - np.arange(lengths.shape[1])  # at least one word between two spans
        lengths = np.maximum(np.minimum(np.minimum(lengths, room), budget[:, None] - before), 0)
        return lengths[:, : int((lengths > 0).sum(1).max())]


def _first_words(
    lengths: NDArray[np.int64], words: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """int64 [B, S]: index in its row of the first word of each span; all placements without touching are equally
    likely.

    n words outside spans leave n + 1 gaps; the spans are put into different ones.
    """
    free = words - lengths.sum(1)
    draws = random.random((len(words), int(free.max()) + 1))
    draws[np.arange(draws.shape[1]) > free[:, None]] = 2
    gaps = np.argpartition(draws, min(lengths.shape[1], draws.shape[1] - 1), axis=1)[:, : lengths.shape[1]]
    gaps = np.take_along_axis(gaps, np.argsort(np.take_along_axis(draws, gaps, 1), axis=1), 1)
    earlier = (gaps[:, None, :] < gaps[:, :, None]) * lengths[:, None, :]
    result: NDArray[np.int64] = gaps + earlier.sum(2)
    return result


@lru_cache(maxsize=8)
def _distribution(p: float, longest: int) -> NDArray[np.float64]:
    """float64 [longest − 1]: the probability that a span has at most 1, 2, … words."""
    shares = (1 - p) ** np.arange(longest)
    total: NDArray[np.float64] = np.cumsum(shares / shares.sum())
    return total[:-1]
