"""Packed documents: rows of whole documents that do not attend to each other."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.layouts import Layout, RowSegments, StreamShape
from pipelines.parts.layouts.permuted_order import permuted_items
from pipelines.vocabulary import Ability, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray


class PackedDocuments(Layout, name="packed_documents"):
    """Whole documents packed into rows, each attending to itself alone, its positions counted from 0 (Krell et al.
    2021).

    A document longer than a row is split; its full segments are rows of their own. Rows are filled longest document
    first, each where it leaves the least room (best-fit decreasing over the histogram of lengths: §3.1 and appendix),
    so that there is little padding. The same documents share a row in every epoch; the order of rows is drawn anew
    every epoch.
    """

    paper = "arXiv:2107.02027"
    provides: ClassVar[frozenset[Field]] = frozenset({Field.DOCUMENT_STARTS, Field.POSITION_IDS, Field.ATTENTION_MASK})
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.WITHIN_DOCUMENTS})

    framed: bool = True
    """Whether each document has the tokenizer's special tokens, like a single text; otherwise only the end-of-document
    token follows it."""

    def segments(self, stream: StreamShape, seed: int, step: int) -> RowSegments:
        packing = _packing(stream)
        epoch, index = divmod(step, self.steps_per_epoch(stream))
        return packing.segments(permuted_items((seed, 6, epoch), packing.count, index, stream.rows))

    def steps_per_epoch(self, stream: StreamShape) -> int:
        return max(1, _packing(stream).count // stream.rows)


@dataclass(frozen=True)
class Packing:
    """The segments of every row of a stream: first the rows that one segment fills, then the rows packed by a
    pattern."""

    stream: StreamShape
    filled: NDArray[np.int64]
    """int64 [D + 1]: number of rows filled by the documents before each one."""
    remainders: NDArray[np.int64]
    """int64 [D']: indices of the documents with a remainder, sorted by its length."""
    remainder_lengths: NDArray[np.int64]
    """int64 [D]: number of text tokens in the remainder of each document."""
    patterns: NDArray[np.int64]
    """int64 [P + 1]: number of rows packed by the patterns before each one."""
    slots: NDArray[np.int64]
    """int64 [P + 1]: number of slots of all patterns before each one; a pattern has one slot for each segment of a
    row."""
    firsts: NDArray[np.int64]
    """int64 [slots]: index into `remainders` of the first document of each slot; the rows of a pattern take consecutive
    ones."""

    @property
    def count(self) -> int:
        """Number of rows."""
        return int(self.filled[-1] + self.patterns[-1])

    def segments(self, rows: NDArray[np.int64]) -> RowSegments:
        """The segments of `rows`."""
        starts, width = self.stream.starts, self.stream.width
        whole = rows < self.filled[-1]
        pattern = np.searchsorted(self.patterns, np.maximum(rows - self.filled[-1], 0), side="right") - 1
        pattern = np.minimum(pattern, len(self.patterns) - 2)
        counts = np.where(whole, 1, self.slots[pattern + 1] - self.slots[pattern])
        row = np.repeat(np.arange(len(rows)), counts)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        begins, lengths = np.empty(len(row), dtype=np.int64), np.full(len(row), width, dtype=np.int64)

        fills_row = whole[row]
        document = np.searchsorted(self.filled, rows[row[fills_row]], side="right") - 1
        begins[fills_row] = starts[document] + width * (rows[row[fills_row]] - self.filled[document])

        packed = row[~fills_row]
        index = rows[packed] - self.filled[-1] - self.patterns[pattern[packed]]
        document = self.remainders[self.firsts[self.slots[pattern[packed]] + nth[~fills_row]] + index]
        begins[~fills_row] = starts[document] + width * (self.filled[document + 1] - self.filled[document])
        lengths[~fills_row] = self.remainder_lengths[document]
        return RowSegments(begins, lengths, row)


@lru_cache(maxsize=2)
def _packing(stream: StreamShape) -> Packing:
    """The packing of `stream`. Takes some bytes per document, and a time that hardly grows with their number."""
    ends = np.append(stream.starts[1:], stream.tokens)
    lengths = ends - stream.starts - int(stream.closes)
    remainders = lengths % stream.width
    filled = np.concatenate([[0], np.cumsum(lengths // stream.width)])
    order = np.argsort(remainders, kind="stable")
    histogram = np.bincount(remainders, minlength=stream.width)
    order = order[histogram[0] :]
    if not filled[-1] and not len(order):
        raise DataError("all documents have no tokens: give this stage a corpus with text")
    used = np.cumsum(histogram) - histogram - histogram[0]
    counts, firsts, sizes = [], [], []
    for count, pattern in patterns(histogram, stream.width + stream.framing, stream.framing):
        for length in pattern:
            firsts.append(int(used[length]))
            used[length] += count
        counts.append(count)
        sizes.append(len(pattern))
    return Packing(
        stream, filled, order, remainders, _cumulative(counts), _cumulative(sizes), np.asarray(firsts, dtype=np.int64)
    )  # fmt: skip


def patterns(histogram: NDArray[np.int64], room: int, framing: int) -> list[tuple[int, tuple[int, ...]]]:
    """(number of rows, lengths of the texts in each) of each pattern that packs texts with the given `histogram` of
    lengths.

    A text takes `framing` tokens more than its length, a row has `room` tokens. Best-fit decreasing: the longest texts
    first, each where the least room remains.
    """
    made: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    """Patterns by remaining room."""
    left: list[int] = []
    for length in range(len(histogram) - 1, 0, -1):
        size, many = length + framing, int(histogram[length])
        while many:
            at = bisect_left(left, size)
            if at == len(left):
                each = min(room // size, many)
                rows, taken, pattern = many // each, many // each * each, (length,) * each
                space = room - each * size
            else:
                free = left[at]
                rows, pattern = made[free].pop()
                if not made[free]:
                    del made[free], left[at]
                each = min(free // size, max(1, many // rows))
                if rows * each > many:  # the remaining rows are filled with shorter texts
                    _add_pattern(made, left, free, (rows - many, pattern))
                    rows = many
                taken, pattern, space = rows * each, pattern + (length,) * each, free - each * size
            many -= taken
            _add_pattern(made, left, space, (rows, pattern))
    return [one for space in sorted(made) for one in made[space]]


def _add_pattern(
    made: dict[int, list[tuple[int, tuple[int, ...]]]], left: list[int], space: int, one: tuple[int, tuple[int, ...]]
) -> None:
    if space not in made:
        made[space] = []
        insort(left, space)
    made[space].append(one)


def _cumulative(values: list[int]) -> NDArray[np.int64]:
    """int64 [n + 1]: the sum of the values before each."""
    return np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
