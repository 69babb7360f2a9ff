"""Merging classes of words by the mutual information of adjacent classes that is lost (Brown et al. 1992, §3).

With p(i, j) the share of adjacent words of which the first is of class i and the second of class j, and l(i), r(j) the
shares of classes among first and among second words,

    I = Σ q(i, j),   q(i, j) = p(i, j) log(p(i, j) / (l(i) r(j)))

Merging i and j replaces their rows and columns of q by those of their sums. What a third class contributes to that is
kept for all pairs and changed with the classes that change: C² terms for a merger instead of C³ (§3, Liang 2005, §4.2).
Shapes: V words, C classes; S = C + 1 slots of classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csc_array, csr_array

    Array = NDArray[np.float64]

SMALLEST = 1e-30
"""Share of adjacent words below which none is."""


def times_log(values: Array) -> Array:
    """x log x of each element, 0 for 0."""
    return values * np.log(np.where(values > 0, values, 1.0))


class MergedClasses:
    """Words in classes, of which the two that lose least are merged for every word that joins, and then to the last.

    `pairs` are counts [V, V] of adjacent words, the most frequent word first.
    """

    def __init__(self, pairs: csr_array, classes: int) -> None:
        self._rows: csr_array = pairs.tocsr()
        self._columns: csc_array = pairs.tocsc()
        total = pairs.sum()
        # a word that is never first, or never second, has no share there, but its logarithm is finite
        self._first = np.maximum(np.asarray(pairs.sum(axis=1)).ravel() / total, SMALLEST)
        self._second = np.maximum(np.asarray(pairs.sum(axis=0)).ravel() / total, SMALLEST)
        self._total, self.classes = total, classes
        slots = classes + 1
        self.class_of: NDArray[np.int64] = np.full(pairs.shape[0], -1)
        """int64 [V]: slot of each word's class; −1 for a word that has not joined."""
        self.active: NDArray[np.bool_] = np.zeros(slots, dtype=bool)
        self.share: Array = np.zeros((slots, slots))
        """[S, S]: p."""
        # 1 in an empty slot, whose logarithms then are 0
        self.left, self.right = np.ones(slots), np.ones(slots)
        self._others: Array = np.zeros((slots, slots))
        """[S, S]: what all other classes contribute to q of the merger of two."""

    def merge(self) -> tuple[NDArray[np.int64], Array]:
        """int64 [V]: class of each word, 0 … C − 1; and [C, C − 1]: path of each class, a node of the tree an element.

        Nodes are numbered from the root, in the reverse of the order of mergers.
        """
        for word in range(self.classes):
            self._join(word, word)
        free = self.classes
        for word in range(self.classes, len(self.class_of)):
            self._join(word, free)
            free = self._merge_pair(*self._best())[1]
        used = np.flatnonzero(self.active)
        names = np.full(self.classes + 1, -1)
        names[used] = np.arange(self.classes)
        classes: NDArray[np.int64] = names[self.class_of]
        members = {int(slot): [int(names[slot])] for slot in used}
        tree = np.zeros((self.classes, self.classes - 1))
        for node in range(self.classes - 2, -1, -1):
            kept, emptied = self._merge_pair(*self._best())
            tree[members[kept], node], tree[members[emptied], node] = -1, 1
            members[kept] += members.pop(emptied)
        return classes, tree

    def information(self) -> float:
        """I of the present classes, in nats."""
        return float(self._cells(self.share, self.left[:, None] * self.right).sum())

    def losses(self) -> Array:
        """[S, S]: what I loses by merging two classes; ∞ unless both exist and the first has the lower slot."""
        cells = self._cells(self.share, self.left[:, None] * self.right)
        alone = cells.sum(0) + cells.sum(1) - np.diagonal(cells)
        own = np.diagonal(self.share)
        inside = own[:, None] + own + self.share + self.share.T
        bounds = (self.left[:, None] + self.left) * (self.right[:, None] + self.right)
        loss = alone[:, None] + alone - cells - cells.T - self._others - self._cells(inside, bounds)
        pair = np.triu(self.active[:, None] & self.active, 1)
        return np.where(pair, loss, np.inf)

    def _best(self) -> tuple[int, int]:
        first, second = divmod(int(self.losses().argmin()), len(self.active))
        return first, second

    @staticmethod
    def _cells(share: Array, product: Array) -> Array:
        return times_log(share) - share * np.log(product)

    def _join(self, word: int, slot: int) -> None:
        """Make `word` a class of its own in `slot`, which is empty."""
        for counts, into in ((self._rows, self.share[slot, :]), (self._columns, self.share[:, slot])):
            begin, end = counts.indptr[word], counts.indptr[word + 1]
            classes, values = self.class_of[counts.indices[begin:end]], counts.data[begin:end] / self._total
            joined = classes >= 0
            into += np.bincount(classes[joined], values[joined], minlength=len(into))
        self.share[slot, slot] += self._rows[word, word] / self._total
        self.left[slot], self.right[slot] = self._first[word], self._second[word]
        self.class_of[word] = slot
        self.active[slot] = True
        self._others += self._contribution(slot)
        self._renew(slot)

    def _merge_pair(self, kept: int, emptied: int) -> tuple[int, int]:
        """Put the class of the slot `emptied` into that of `kept`; the two slots."""
        self._others -= self._contribution(kept) + self._contribution(emptied)
        self.share[kept, :] += self.share[emptied, :]
        self.share[:, kept] += self.share[:, emptied]
        self.share[emptied, :] = self.share[:, emptied] = 0
        self.left[kept] += self.left[emptied]
        self.right[kept] += self.right[emptied]
        self.left[emptied] = self.right[emptied] = 1
        self.active[emptied] = False
        self.class_of[self.class_of == emptied] = kept
        self._others += self._contribution(kept)
        self._renew(kept)
        return kept, emptied

    def _contribution(self, third: int) -> Array:
        """[S, S]: q of mergers of two classes with `third`, both ways."""
        after, before = self.share[:, third], self.share[third, :]
        follows, comes = after[:, None] + after, before[:, None] + before
        lefts, rights = np.log(self.left[:, None] + self.left), np.log(self.right[:, None] + self.right)
        ahead: Array = times_log(follows) - follows * (lefts + np.log(self.right[third]))
        back: Array = times_log(comes) - comes * (rights + np.log(self.left[third]))
        return ahead + back

    def _renew(self, slot: int) -> None:
        """Compute what all others contribute to mergers with the class of `slot` from the beginning."""
        after, before = self.share[slot, :] + self.share, self.share[:, slot] + self.share.T
        # [S, S]: the class to merge with, and the third one
        terms = (
            times_log(after) - after * np.log(self.left[slot] + self.left)[:, None] - after * np.log(self.right)
            + times_log(before) - before * np.log(self.right[slot] + self.right)[:, None] - before * np.log(self.left)
        )  # fmt: skip
        terms[:, slot] = 0
        np.fill_diagonal(terms, 0)
        self._others[slot, :] = self._others[:, slot] = terms.sum(1)
