"""Training of a unigram language model of pieces by expectation-maximisation (Kudo 2018, §3.2).

The library `tokenizers` has a trainer too, but it sums in the order of a hash table, so that the scores differ in every
process. Here words are sorted, every sum has a fixed order, and all words are processed in vectorised form:

    words ──▶ frequent substrings ──▶ ( expected counts ──▶ probabilities ──▶ pruning )* ──▶ pieces
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

LONGEST = 16
"""Maximum number of characters of a piece."""
LONGEST_WORD = 64
"""Maximum number of characters of a word; longer ones are split."""
SEED_FACTOR = 10
"""Number of initial pieces, as a multiple of the requested number."""
SHRINK = 0.75
"""Share of the pieces kept in each pruning."""
EM_ITERATIONS = 2
"""Number of EM iterations between two prunings."""
RARE = 0.5
"""Expected count below which a piece is removed immediately."""


def learn_pieces(words: Mapping[str, int], size: int) -> list[tuple[str, float]]:
    """At most `size` pieces with their log-probabilities, most likely first; each character of `words` is one of them.

    `words` maps units that pieces must not cross to their frequency. Raises ValueError when `size` is less than the
    number of distinct characters.
    """
    parts: Counter[str] = Counter()
    for word, count in words.items():
        for at in range(0, len(word), LONGEST_WORD):
            parts[word[at : at + LONGEST_WORD]] += count
    texts = sorted(parts)
    counts = np.asarray([parts[text] for text in texts], dtype=np.float64)
    pieces, expected, lattice = _seeds(texts, counts, size)
    characters = np.asarray([len(piece) == 1 for piece in pieces])
    if size < characters.sum():
        raise ValueError(f"{size} pieces cannot hold {characters.sum()} characters")
    alternatives = _lattice_of_pieces(pieces)
    kept = np.arange(len(pieces))
    while True:
        for _ in range(EM_ITERATIONS):
            expected = lattice.expected(_logs(expected), counts)
            stays = (expected >= RARE) | characters[kept]
            lattice, alternatives, kept = lattice.keep(stays), alternatives.keep(stays), kept[stays]
            # a character that is never needed counts like a rare piece
            expected = np.maximum(expected[stays], RARE)
        if len(kept) <= size:
            break
        scores = _logs(expected)
        # loss of log-likelihood when a piece is replaced by its best alternative segmentation
        loss = expected * (scores - alternatives.best(scores)[kept])
        stays = np.zeros(len(kept), dtype=np.bool_)
        stays[np.argsort(-loss, kind="stable")[: max(size, int(SHRINK * len(kept)))]] = True
        lattice, alternatives, kept, expected = (
            lattice.keep(stays),
            alternatives.keep(stays),
            kept[stays],
            expected[stays],
        )
    ranked = sorted((-score, pieces[index]) for index, score in zip(kept, _logs(expected).tolist(), strict=True))
    return [(piece, -score) for score, piece in ranked]


def _logs(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.log(counts / counts.sum())
    return result


@dataclass(frozen=True)
class SortedEdges:
    """The edges of a lattice in topological order, for dynamic programming over all words at once."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    pieces: NDArray[np.int32]
    """int32 [E]: the piece of each edge."""
    depth: NDArray[np.int32]
    """int32 [E]: number of characters between the end of the word where the pass starts and `target`; ascending."""

    @classmethod
    def of(
        cls, source: NDArray[np.int32], target: NDArray[np.int32], pieces: NDArray[np.int32], depth: NDArray[np.int32]
    ) -> SortedEdges:
        order = np.lexsort((target, depth))
        return cls(source[order], target[order], pieces[order], depth[order])

    def keep(self, stays: NDArray[np.bool_], new_ids: NDArray[np.int32]) -> SortedEdges:
        """The edges of the pieces that stay, with the piece ids `new_ids`."""
        edges = stays[self.pieces]
        return SortedEdges(self.source[edges], self.target[edges], new_ids[self.pieces[edges]], self.depth[edges])

    def run(
        self, scores: NDArray[np.float64], start: NDArray[np.int64], nodes: int, combine: np.ufunc
    ) -> NDArray[np.float64]:
        """float64 [nodes]: the scores of all paths from the nodes `start` to each node, combined by `combine`."""
        result = np.full(nodes, -np.inf)
        result[start] = 0
        bounds = np.flatnonzero(np.diff(self.depth, prepend=-1, append=-1)).tolist()
        for begin, end in pairwise(bounds):
            target = self.target[begin:end]
            groups = np.flatnonzero(np.diff(target, prepend=-1))
            paths = result[self.source[begin:end]] + scores[self.pieces[begin:end]]
            result[target[groups]] = combine.reduceat(paths, groups)
        return result


@dataclass(frozen=True)
class SegmentationLattice:
    """All segmentations of some words into pieces: nodes between characters, an edge for each matching piece."""

    sizes: NDArray[np.int64]
    """int64 [W]: number of characters of each word, which has one more node."""
    forward: SortedEdges
    backward: SortedEdges

    @classmethod
    def of(
        cls, sizes: NDArray[np.int64], begins: NDArray[np.int32], lengths: NDArray[np.int32], pieces: NDArray[np.int32]
    ) -> SegmentationLattice:
        """The lattice of edges [E] from the nodes `begins` over `lengths` characters, each with its piece."""
        first = np.cumsum(sizes + 1) - sizes - 1
        passed = (begins - np.repeat(first, sizes + 1)[begins]).astype(np.int32)
        left = (np.repeat(sizes, sizes + 1)[begins] - passed).astype(np.int32)
        ends = begins + lengths
        return cls(
            sizes, SortedEdges.of(begins, ends, pieces, passed + lengths), SortedEdges.of(ends, begins, pieces, left)
        )

    def keep(self, stays: NDArray[np.bool_]) -> SegmentationLattice:
        """The lattice of the pieces that stay."""
        new_ids = (np.cumsum(stays) - 1).astype(np.int32)
        return SegmentationLattice(self.sizes, self.forward.keep(stays, new_ids), self.backward.keep(stays, new_ids))

    def expected(self, scores: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [pieces]: expected count of each piece over all segmentations, where word w occurs `counts[w]`
        times."""
        last = np.cumsum(self.sizes + 1) - 1
        nodes = int(last[-1]) + 1
        before = self.forward.run(scores, last - self.sizes, nodes, np.logaddexp)
        after = self.backward.run(scores, last, nodes, np.logaddexp)
        edges = self.forward
        total = np.repeat(before[last], self.sizes + 1)[edges.source]
        share = np.exp(before[edges.source] + scores[edges.pieces] + after[edges.target] - total)
        weights = np.repeat(counts, self.sizes + 1)[edges.source] * share
        return np.bincount(edges.pieces, weights=weights, minlength=len(scores)).astype(np.float64)

    def best(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """float64 [W]: log-probability of the most likely segmentation of each word; −inf if there is none."""
        last = np.cumsum(self.sizes + 1) - 1
        return self.forward.run(scores, last - self.sizes, int(last[-1]) + 1, np.maximum)[last]


def _seeds(
    texts: Sequence[str], counts: NDArray[np.float64], size: int
) -> tuple[list[str], NDArray[np.float64], SegmentationLattice]:
    """The initial pieces (every character, and the substrings that cover most text), their frequencies, and their
    lattice."""
    text = "".join(texts)
    sizes = np.asarray([len(one) for one in texts], dtype=np.int64)
    word = np.repeat(np.arange(len(texts)), sizes)
    left = np.cumsum(sizes)[word] - np.arange(len(text))
    weight = counts[word]
    _, signs = np.unique(np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32), return_inverse=True)
    at, ids = np.arange(len(text)), signs
    levels = []
    for length in range(1, LONGEST + 1):
        _, first, ids = np.unique(ids, return_index=True, return_inverse=True)
        frequencies = np.bincount(ids, weights=weight[at])
        levels.append((at, ids, at[first], frequencies))
        # extensions of a rare substring are rare too
        longer = (frequencies[ids] >= 2) & (left[at] > length)
        at = at[longer]
        ids = ids[longer] * (int(signs.max()) + 1) + signs[at + length]
        if len(at) == 0:
            break
    lengths = np.repeat(np.arange(1, len(levels) + 1), [len(first) for _, _, first, _ in levels])
    firsts, totals = (np.concatenate([level[part] for level in levels]) for part in (2, 3))
    worth = np.where(lengths == 1, np.inf, np.where(totals >= 2, totals * lengths, 0))
    order = np.lexsort((firsts, lengths, -worth))
    chosen = order[(worth[order] > 0)][: max(SEED_FACTOR * size, len(levels[0][2]))]
    piece_ids = np.full(len(lengths), -1, dtype=np.int32)
    piece_ids[chosen] = np.arange(len(chosen))
    begins, spans, pieces = [], [], []
    passed = 0
    for length, (at, ids, first, _) in enumerate(levels, 1):
        piece = piece_ids[passed : passed + len(first)][ids]
        fits = piece >= 0
        # each word has one more node than characters
        begins.append((at + word[at])[fits].astype(np.int32))
        spans.append(np.full(int(fits.sum()), length, dtype=np.int32))
        pieces.append(piece[fits])
        passed += len(first)
    lattice = SegmentationLattice.of(sizes, np.concatenate(begins), np.concatenate(spans), np.concatenate(pieces))
    named = [text[begin : begin + length] for begin, length in zip(firsts[chosen], lengths[chosen], strict=True)]
    return named, totals[chosen], lattice


def _lattice_of_pieces(pieces: Sequence[str]) -> SegmentationLattice:
    """The segmentations of each piece into other pieces."""
    ids = {piece: piece_id for piece_id, piece in enumerate(pieces)}
    edges: list[tuple[int, int, int]] = []
    node = 0
    for piece in pieces:
        for begin in range(len(piece)):
            for end in range(begin + 1, len(piece) + 1):
                piece_id = ids.get(piece[begin:end])
                if piece_id is not None and end - begin < len(piece):
                    edges.append((node + begin, end - begin, piece_id))
        node += len(piece) + 1
    begins, lengths, others = np.asarray(edges, dtype=np.int32).reshape(-1, 3).T
    return SegmentationLattice.of(np.asarray([len(piece) for piece in pieces], dtype=np.int64), begins, lengths, others)
