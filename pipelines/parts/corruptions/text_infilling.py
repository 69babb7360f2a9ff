"""Text infilling: spans of Poisson lengths become a single mask each (Lewis et al. 2019, BART §2.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from pydantic import Field as Option

from pipelines.parts.corruptions import Arrays, TokenIds
from pipelines.parts.corruptions.masking import is_ordinary
from pipelines.parts.corruptions.rewriting import Rewriting
from pipelines.vocabulary import Field


class TextInfilling(Rewriting, name="text_infilling"):
    """Replace spans of each row by one mask token each; a span of no token inserts a mask.

        a b c d e f g  →  a _ e _ f g        of three tokens, and of none

    Lengths are drawn until they sum to round(rate · ordinary tokens); the last is cut to that. All orders of spans and
    remaining tokens are equally likely, so that two spans may be adjacent. No row becomes longer: there are at most as
    many masks as removed tokens.
    """

    paper = "arXiv:1910.13461"
    needs_tokens = frozenset({"mask"})

    rate: float = Option(0.3, gt=0, lt=1)
    """Share of a row's ordinary tokens to remove (§5: 30 %)."""
    mean_length: float = Option(3.0, gt=0, le=1000)
    """λ, the mean of the Poisson distribution of span lengths."""

    def apply(self, batch: Arrays, tokens: TokenIds, random: np.random.Generator) -> Arrays:
        clean = batch[Field.INPUT_IDS]
        ordinary = is_ordinary(clean, tokens)
        removed, masks, inserted = self._spans(ordinary, random)
        rows, width = clean.shape
        # before each column, and after the last, there is room for an inserted mask
        ids = np.full((rows, 2 * width + 1), tokens.mask)
        ids[:, 1::2] = np.where(masks, tokens.mask, clean)
        keep = np.zeros(ids.shape, dtype=np.bool_)
        keep[:, 0::2] = inserted
        keep[:, 1::2] = ~removed | masks
        columns = np.broadcast_to(np.minimum(np.arange(2 * width + 1) // 2, width - 1), ids.shape)
        return self.selected(batch, ids, columns, keep, tokens)

    def _spans(
        self, ordinary: NDArray[np.bool_], random: np.random.Generator
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
        """Bool [B, L] twice: tokens of spans, and the first token of each span; [B, L + 1]: places before tokens, or
        after the last one, of spans without a token."""
        rows, width = ordinary.shape
        count = ordinary.sum(1)
        lengths, used = self._lengths(np.rint(self.rate * count).astype(np.int64), width, random)
        singles = np.arange(width) < (count - lengths.sum(1))[:, None]
        sizes = np.concatenate([lengths, singles.astype(np.int64)], axis=1)
        keys = np.where(np.concatenate([used, singles], axis=1), random.random(sizes.shape), np.inf)
        order = np.argsort(keys, axis=1, kind="stable")
        sizes = np.take_along_axis(sizes, order, axis=1)
        is_span = np.take_along_axis(np.concatenate([used, np.zeros_like(singles)], axis=1), order, axis=1)
        begins = np.cumsum(sizes, axis=1) - sizes
        # columns of the ordinary tokens by rank, then the one after the last of them
        by_rank = np.argsort(~ordinary, axis=1, kind="stable")
        last = np.take_along_axis(by_rank, np.maximum(count - 1, 0)[:, None], axis=1) + 1
        by_rank = np.where(np.arange(width + 1) < count[:, None], np.pad(by_rank, ((0, 0), (0, 1))), last)
        row = np.broadcast_to(np.arange(rows)[:, None], begins.shape)
        inserted = np.zeros((rows, width + 1), dtype=np.bool_)
        empty = is_span & (sizes == 0)
        inserted[row[empty], by_rank[row[empty], begins[empty]]] = True
        full = is_span & (sizes > 0)
        steps = np.zeros((rows, width + 1), dtype=np.int64)
        np.add.at(steps, (row[full], begins[full]), 1)
        np.add.at(steps, (row[full], (begins + sizes)[full]), -1)
        rank = np.maximum(np.cumsum(ordinary, axis=1) - 1, 0)
        removed = ordinary & np.take_along_axis(np.cumsum(steps, axis=1) > 0, rank, axis=1)
        first = np.zeros((rows, width), dtype=np.bool_)
        first[row[full], by_rank[row[full], begins[full]]] = True
        return removed, first, inserted

    def _lengths(
        self, total: NDArray[np.int64], most: int, random: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """int64 [B, most] and bool: lengths of spans that sum to at most `total` [B], and which of them there are."""
        drawn = random.poisson(self.mean_length, size=(len(total), most))
        before = np.cumsum(drawn, axis=1) - drawn
        left = total[:, None] - before
        used = left > 0
        lengths = np.where(used, np.minimum(drawn, left), 0)
        empty = used & (lengths == 0)
        room = (lengths.sum(1) - (lengths > 0).sum(1))[:, None]
        return lengths, used & ~(empty & (np.cumsum(empty, axis=1) > room))
