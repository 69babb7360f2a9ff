"""Packed documents: whole ones in rows, none of which sees another."""

from __future__ import annotations

from bisect import bisect_left, insort
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pipelines.errors import DataError
from pipelines.parts.layouts import StreamShape, Layout, RowSegments
from pipelines.parts.layouts.permuted_order import permuted_items
from pipelines.vocabulary import Ability, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray


class PackedDocuments(Layout, name="packed_documents"):
    """Whole documents packed into rows, each attending to itself alone, its positions counted from 0 (Krell et al. 2021).

    A document longer than a row is cut; its full pieces are rows of their own. Rows are filled longest document first, each
    where it leaves least room (best fit, by the histogram of lengths: §3.1 and appendix), so that little is padding. What stands
    together never changes and means nothing; the order of rows is drawn anew every epoch.
    """

    paper = "arXiv:2107.02027"
    provides: ClassVar[frozenset[Field]] = frozenset({Field.DOCUMENT_STARTS, Field.POSITION_IDS, Field.ATTENTION_MASK})
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset({Ability.WITHIN_DOCUMENTS})

    framed: bool = True
    """Whether each document stands between the tokenizer's own special tokens, as a single text would; else it is followed by
    the end of a document alone."""

    def segments(self, ground: StreamShape, seed: int, step: int) -> RowSegments:
        packing = _packing(ground)
        epoch, place = divmod(step, self.steps_per_epoch(ground))
        return packing.segments(permuted_items((seed, 6, epoch), packing.count, place, ground.rows))

    def steps_per_epoch(self, ground: StreamShape) -> int:
        return max(1, _packing(ground).count // ground.rows)


@dataclass(frozen=True)
class Packing:
    """Which pieces stand in which row of a ground: first the rows that one piece fills, then those packed by some pattern."""

    ground: StreamShape
    filled: NDArray[np.int64]
    """[D + 1] rows that the documents before each one fill."""
    rests: NDArray[np.int64]
    """[D'] documents with something left over, by how much that is."""
    rest_lengths: NDArray[np.int64]
    """[D] tokens of text that each document leaves over."""
    patterns: NDArray[np.int64]
    """[S + 1] rows that are packed by the patterns before each one."""
    slots: NDArray[np.int64]
    """[S + 1] pieces that a row has in all patterns before each one."""
    firsts: NDArray[np.int64]
    """[slots] where in `rests` the documents of a pattern's slot begin: one for each row that is packed by it."""

    @property
    def count(self) -> int:
        """Of rows."""
        return int(self.filled[-1] + self.patterns[-1])

    def segments(self, rows: NDArray[np.int64]) -> RowSegments:
        """The pieces of `rows`."""
        starts, width = self.ground.starts, self.ground.width
        whole = rows < self.filled[-1]
        pattern = np.searchsorted(self.patterns, np.maximum(rows - self.filled[-1], 0), side="right") - 1
        pattern = np.minimum(pattern, len(self.patterns) - 2)
        pieces = np.where(whole, 1, self.slots[pattern + 1] - self.slots[pattern])
        row = np.repeat(np.arange(len(rows)), pieces)
        nth = np.arange(len(row)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
        begins, lengths = np.empty(len(row), dtype=np.int64), np.full(len(row), width, dtype=np.int64)

        of_whole = whole[row]
        document = np.searchsorted(self.filled, rows[row[of_whole]], side="right") - 1
        begins[of_whole] = starts[document] + width * (rows[row[of_whole]] - self.filled[document])

        packed = row[~of_whole]
        place = rows[packed] - self.filled[-1] - self.patterns[pattern[packed]]
        document = self.rests[self.firsts[self.slots[pattern[packed]] + nth[~of_whole]] + place]
        begins[~of_whole] = starts[document] + width * (self.filled[document + 1] - self.filled[document])
        lengths[~of_whole] = self.rest_lengths[document]
        return RowSegments(begins, lengths, row)


@lru_cache(maxsize=2)
def _packing(ground: StreamShape) -> Packing:
    """How `ground` is packed. Takes some bytes a document, and a time that hardly grows with their number."""
    ends = np.append(ground.starts[1:], ground.tokens)
    lengths = ends - ground.starts - int(ground.closes)
    rests = lengths % ground.width
    filled = np.concatenate([[0], np.cumsum(lengths // ground.width)])
    order = np.argsort(rests, kind="stable")
    histogram = np.bincount(rests, minlength=ground.width)
    order = order[histogram[0] :]
    if not filled[-1] and not len(order):
        raise DataError("every document is empty once it is encoded: give this stage some text")
    used = np.cumsum(histogram) - histogram - histogram[0]
    counts, firsts, sizes = [], [], []
    for count, pattern in patterns(histogram, ground.width + ground.framing, ground.framing):
        for length in pattern:
            firsts.append(int(used[length]))
            used[length] += count
        counts.append(count)
        sizes.append(len(pattern))
    return Packing(
        ground, filled, order, rests, _running(counts), _running(sizes), np.asarray(firsts, dtype=np.int64)
    )  # fmt: skip


def patterns(histogram: NDArray[np.int64], room: int, framing: int) -> list[tuple[int, tuple[int, ...]]]:
    """(rows, lengths of the texts in each): how texts are packed of which `histogram` [lengths] says how many have a length.

    A text takes `framing` tokens more than its length, a row has `room`. Longest first, where least room is left.
    """
    made: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    """By the room that is left."""
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
                if rows * each > many:  # the others wait for shorter ones
                    _keep(made, left, free, (rows - many, pattern))
                    rows = many
                taken, pattern, space = rows * each, pattern + (length,) * each, free - each * size
            many -= taken
            _keep(made, left, space, (rows, pattern))
    return [one for space in sorted(made) for one in made[space]]


def _keep(
    made: dict[int, list[tuple[int, tuple[int, ...]]]], left: list[int], space: int, one: tuple[int, tuple[int, ...]]
) -> None:
    if space not in made:
        made[space] = []
        insort(left, space)
    made[space].append(one)


def _running(values: list[int]) -> NDArray[np.int64]:
    """[n + 1] the sum of the values before each."""
    return np.concatenate([[0], np.cumsum(values, dtype=np.int64)])
