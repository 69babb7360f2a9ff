"""The pieces of a unigram language model, learnt by expectation and maximisation (Kudo 2018, §3.2).

`tokenizers` can learn them too, but adds in the order of a hash table, and so scores the pieces otherwise in every
process. Here words are sorted, every sum has a fixed order, and all words are added up side by side:

    words ──▶ frequent substrings ──▶ ( expected counts ──▶ probabilities ──▶ fewer pieces )* ──▶ pieces
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

LONGEST = 16
"""Characters of a piece at most."""
PIECEMEAL = 64
"""Characters of a word that are looked at together: a longer one is cut."""
SEEDS = 10
"""Pieces to begin with, as a multiple of those that are wanted."""
SHRINK = 0.75
"""Share of the pieces that stay in each round."""
ROUNDS = 2
"""Expectations and maximisations before pieces are dropped."""
RARE = 0.5
"""Expected occurrences below which a piece is dropped at once."""


def learn_pieces(words: Mapping[str, int], size: int) -> list[tuple[str, float]]:
    """At most `size` pieces with their log probabilities, likeliest first; each character of `words` is one of them.

    `words` maps what pieces must not cross to how often it stands in the text. Raises ValueError when `size` is less
    than the number of characters.
    """
    cut: Counter[str] = Counter()
    for word, count in words.items():
        for at in range(0, len(word), PIECEMEAL):
            cut[word[at : at + PIECEMEAL]] += count
    texts = sorted(cut)
    counts = np.asarray([cut[text] for text in texts], dtype=np.float64)
    pieces, seen, lattice = _seeds(texts, counts, size)
    characters = np.asarray([len(piece) == 1 for piece in pieces])
    if size < characters.sum():
        raise ValueError(f"{size} pieces cannot hold {characters.sum()} characters")
    inside = _insides(pieces)
    kept = np.arange(len(pieces))
    expected = seen
    while True:
        for _ in range(ROUNDS):
            expected = lattice.expected(_logs(expected), counts)
            stays = (expected >= RARE) | characters[kept]
            lattice, inside, kept = lattice.keep(stays), inside.keep(stays), kept[stays]
            # a character that is never needed is as likely as a rare piece
            expected = np.maximum(expected[stays], RARE)
        if len(kept) <= size:
            break
        scores = _logs(expected)
        # what the text's likelihood loses when the best other way to write a piece takes its place
        lost = expected * (scores - inside.best(scores)[kept])
        stays = np.zeros(len(kept), dtype=np.bool_)
        stays[np.argsort(-lost, kind="stable")[: max(size, int(SHRINK * len(kept)))]] = True
        lattice, inside, kept, expected = lattice.keep(stays), inside.keep(stays), kept[stays], expected[stays]
    ranked = sorted((-score, pieces[index]) for index, score in zip(kept, _logs(expected).tolist(), strict=True))
    return [(piece, -score) for score, piece in ranked]


def _logs(counts: NDArray[np.float64]) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.log(counts / counts.sum())
    return result


@dataclass(frozen=True)
class Sweep:
    """The edges of a lattice in an order in which every node is complete before it is left."""

    source: NDArray[np.int32]
    target: NDArray[np.int32]
    pieces: NDArray[np.int32]
    """[E] what stands on each edge."""
    depth: NDArray[np.int32]
    """[E] characters between the side of the word that the sweep begins at and `target`; ascending."""

    @classmethod
    def of(
        cls, source: NDArray[np.int32], target: NDArray[np.int32], pieces: NDArray[np.int32], depth: NDArray[np.int32]
    ) -> Sweep:
        order = np.lexsort((target, depth))
        return cls(source[order], target[order], pieces[order], depth[order])

    def keep(self, stays: NDArray[np.bool_], numbers: NDArray[np.int32]) -> Sweep:
        """The edges of the pieces that stay, under their new numbers."""
        edges = stays[self.pieces]
        return Sweep(self.source[edges], self.target[edges], numbers[self.pieces[edges]], self.depth[edges])

    def run(
        self, scores: NDArray[np.float64], start: NDArray[np.int64], nodes: int, combine: np.ufunc
    ) -> NDArray[np.float64]:
        """[nodes] the scores of all ways from a node of `start` to each node, combined."""
        result = np.full(nodes, -np.inf)
        result[start] = 0
        bounds = np.flatnonzero(np.diff(self.depth, prepend=-1, append=-1)).tolist()
        for begin, end in pairwise(bounds):
            target = self.target[begin:end]
            groups = np.flatnonzero(np.diff(target, prepend=-1))
            ways = result[self.source[begin:end]] + scores[self.pieces[begin:end]]
            result[target[groups]] = combine.reduceat(ways, groups)
        return result


@dataclass(frozen=True)
class SegmentationLattice:
    """All ways to cut some words into pieces: nodes around the characters, an edge wherever a piece fits."""

    sizes: NDArray[np.int64]
    """[W] characters of each word; it has one more node."""
    forward: Sweep
    backward: Sweep

    @classmethod
    def of(
        cls, sizes: NDArray[np.int64], begins: NDArray[np.int32], lengths: NDArray[np.int32], pieces: NDArray[np.int32]
    ) -> SegmentationLattice:
        """Edges [E] from the nodes `begins` over `lengths` characters, each with its piece."""
        first = np.cumsum(sizes + 1) - sizes - 1
        passed = (begins - np.repeat(first, sizes + 1)[begins]).astype(np.int32)
        left = (np.repeat(sizes, sizes + 1)[begins] - passed).astype(np.int32)
        ends = begins + lengths
        return cls(sizes, Sweep.of(begins, ends, pieces, passed + lengths), Sweep.of(ends, begins, pieces, left))

    def keep(self, stays: NDArray[np.bool_]) -> SegmentationLattice:
        """The lattice without the pieces that go."""
        numbers = (np.cumsum(stays) - 1).astype(np.int32)
        return SegmentationLattice(self.sizes, self.forward.keep(stays, numbers), self.backward.keep(stays, numbers))

    def expected(self, scores: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
        """How often each piece stands in the text, over all ways to cut it, where word w stands `counts[w]` times."""
        last = np.cumsum(self.sizes + 1) - 1
        nodes = int(last[-1]) + 1
        before = self.forward.run(scores, last - self.sizes, nodes, np.logaddexp)
        after = self.backward.run(scores, last, nodes, np.logaddexp)
        way = self.forward
        total = np.repeat(before[last], self.sizes + 1)[way.source]
        share = np.exp(before[way.source] + scores[way.pieces] + after[way.target] - total)
        weights = np.repeat(counts, self.sizes + 1)[way.source] * share
        return np.bincount(way.pieces, weights=weights, minlength=len(scores)).astype(np.float64)

    def best(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """[W] log probability of the likeliest way to cut each word; −inf where there is none."""
        last = np.cumsum(self.sizes + 1) - 1
        return self.forward.run(scores, last - self.sizes, int(last[-1]) + 1, np.maximum)[last]


def _seeds(
    texts: Sequence[str], counts: NDArray[np.float64], size: int
) -> tuple[list[str], NDArray[np.float64], SegmentationLattice]:
    """Every character and the substrings that write most of the text, how often each stands in it, and where in `texts`."""
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
        seen = np.bincount(ids, weights=weight[at])
        levels.append((at, ids, at[first], seen))
        # what is rare is rare in longer substrings too
        longer = (seen[ids] >= 2) & (left[at] > length)
        at = at[longer]
        ids = ids[longer] * (int(signs.max()) + 1) + signs[at + length]
        if len(at) == 0:
            break
    lengths = np.repeat(np.arange(1, len(levels) + 1), [len(first) for _, _, first, _ in levels])
    firsts, totals = (np.concatenate([level[part] for level in levels]) for part in (2, 3))
    worth = np.where(lengths == 1, np.inf, np.where(totals >= 2, totals * lengths, 0))
    order = np.lexsort((firsts, lengths, -worth))
    chosen = order[(worth[order] > 0)][: max(SEEDS * size, len(levels[0][2]))]
    numbers = np.full(len(lengths), -1, dtype=np.int32)
    numbers[chosen] = np.arange(len(chosen))
    begins, spans, pieces = [], [], []
    passed = 0
    for length, (at, ids, first, _) in enumerate(levels, 1):
        piece = numbers[passed : passed + len(first)][ids]
        fits = piece >= 0
        # every word before a character has one node more than it has characters
        begins.append((at + word[at])[fits].astype(np.int32))
        spans.append(np.full(int(fits.sum()), length, dtype=np.int32))
        pieces.append(piece[fits])
        passed += len(first)
    lattice = SegmentationLattice.of(sizes, np.concatenate(begins), np.concatenate(spans), np.concatenate(pieces))
    named = [text[begin : begin + length] for begin, length in zip(firsts[chosen], lengths[chosen], strict=True)]
    return named, totals[chosen], lattice


def _insides(pieces: Sequence[str]) -> SegmentationLattice:
    """The ways to write each piece with others."""
    numbers = {piece: number for number, piece in enumerate(pieces)}
    edges: list[tuple[int, int, int]] = []
    node = 0
    for piece in pieces:
        for begin in range(len(piece)):
            for end in range(begin + 1, len(piece) + 1):
                number = numbers.get(piece[begin:end])
                if number is not None and end - begin < len(piece):
                    edges.append((node + begin, end - begin, number))
        node += len(piece) + 1
    begins, lengths, others = np.asarray(edges, dtype=np.int32).reshape(-1, 3).T
    return SegmentationLattice.of(np.asarray([len(piece) for piece in pieces], dtype=np.int64), begins, lengths, others)
