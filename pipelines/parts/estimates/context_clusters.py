"""Contexts of a word's occurrences, clustered; every occurrence is named after its cluster (Huang et al. 2012, §3).

Shapes: N tokens of a text, n occurrences, V words, K clusters of a word, H elements of a vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.parts.estimates import TokenFile

CLUSTERS, LABELS = "clusters.npz", "labels.bin"
CHUNK = 2**16
"""Occurrences whose contexts are in memory at once."""
ROUNDS = 30
"""Most rounds of k-means."""


@dataclass(frozen=True)
class TextContexts:
    """The contexts of any occurrences in a text."""

    tokens: NDArray[np.int64]
    """[N]."""
    documents: NDArray[np.int64]
    """[N]: number of each token's document."""
    weighted: NDArray[np.float32]
    """[V, H]: vector of each word times how informative it is; 0 for what is no word."""
    window: int

    def at(self, positions: NDArray[np.int64]) -> NDArray[np.float32]:
        """[n, H]: the sum of the weighted vectors of the neighbours of each of `positions` [n], of length 1, or 0."""
        sums = np.zeros((len(positions), self.weighted.shape[1]), dtype=np.float32)
        for distance in (*range(-self.window, 0), *range(1, self.window + 1)):
            near = positions + distance
            inside = (near >= 0) & (near < len(self.tokens))
            near = np.where(inside, near, positions)
            inside &= self.documents[near] == self.documents[positions]
            sums += self.weighted[self.tokens[near]] * inside[:, None]
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        np.divide(sums, lengths, where=lengths > 0, out=sums)
        return sums


def informativeness(text: TokenFile) -> NDArray[np.float32]:
    """float32 [V]: log(documents / documents with the word), 0 for special tokens and words that do not occur."""
    tokens = text.tokens.astype(np.int64)
    documents = np.cumsum(tokens == text.end)
    pairs = np.unique(documents * text.vocabulary_size + tokens)
    frequency = np.bincount(pairs % text.vocabulary_size, minlength=text.vocabulary_size)
    number = max(1, text.counts[text.end])
    with np.errstate(divide="ignore"):
        result = np.where(frequency > 0, np.log(number / np.minimum(np.maximum(frequency, 1), number)), 0.0)
    result[list(text.special)] = 0.0
    return np.asarray(result, dtype=np.float32)


def spherical_kmeans(
    points: NDArray[np.float32], clusters: int, random: np.random.Generator, centres: NDArray[np.float32] | None = None
) -> NDArray[np.float32]:
    """[K, H]: centres of length 1 of at most `clusters` clusters of `points` [n, H] of length 1, by cosine (Dhillon &
    Modha 2001).

    They begin with `centres`, or with points drawn far from each other (k-means++, Arthur & Vassilvitskii 2007); there
    are fewer where fewer points differ. A cluster that loses all of its points takes the one that is farthest from its
    centre.
    """
    centres = _first_centres(points, clusters, random) if centres is None else centres
    labels = np.full(len(points), -1)
    for _ in range(ROUNDS):
        cosines = points @ centres.T
        before, labels = labels, cosines.argmax(1)
        if (before == labels).all():
            break
        sums = np.zeros_like(centres)
        np.add.at(sums, labels, points)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        empty = np.flatnonzero(lengths[:, 0] == 0)
        if len(empty):
            sums[empty] = points[cosines.max(1).argsort(kind="stable")[: len(empty)]]
            lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = sums / np.maximum(lengths, 1e-12)
    return centres


def _first_centres(points: NDArray[np.float32], clusters: int, random: np.random.Generator) -> NDArray[np.float32]:
    chosen = [int(random.integers(len(points)))]
    distances = 1 - points @ points[chosen[0]]
    while len(chosen) < clusters:
        weights = np.maximum(distances, 0.0).astype(np.float64)
        weights[weights < 1e-6] = 0.0  # the same direction up to rounding
        if not weights.any():
            break
        chosen.append(int(random.choice(len(points), p=weights / weights.sum())))
        distances = np.minimum(distances, 1 - points @ points[chosen[-1]])
    return points[chosen]


@dataclass(frozen=True)
class ContextClusters:
    """Clusters of the contexts of frequent words, and the text with a number for each word and cluster: a unit of
    work."""

    text: TokenFile
    vectors: Path
    """File with `vectors` [V, H]."""
    clustered: tuple[int, ...]
    """The words whose contexts are clustered."""
    clusters: int
    window: int
    contexts: int
    """Most contexts of a word from which centres are made, evenly spread over the text."""

    @property
    def name(self) -> str:
        return "clusters"

    def __call__(self, folder: Path) -> None:
        size = self.text.vocabulary_size
        with np.load(self.vectors) as stored:
            vectors = stored["vectors"]
        weights = informativeness(self.text)
        tokens = self.text.tokens.astype(np.int64)
        text = TextContexts(tokens, np.cumsum(tokens == self.text.end), vectors * weights[:, None], self.window)
        labels, owners, centres = tokens.astype(np.uint32), [np.arange(size)], [np.zeros_like(vectors)]
        further, others, total = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64), size
        for word, positions in self._occurrences(tokens):
            own_centres = self._centres(word, positions, text)
            further[word], others[word] = total, len(own_centres) - 1
            numbers = np.asarray([word, *range(total, total + len(own_centres) - 1)], dtype=np.uint32)
            for begin in range(0, len(positions), CHUNK):
                some = positions[begin : begin + CHUNK]
                labels[some] = numbers[(text.at(some) @ own_centres.T).argmax(1)]
            centres[0][word] = own_centres[0]
            centres.append(own_centres[1:])
            owners.append(np.full(len(own_centres) - 1, word))
            total += len(own_centres) - 1
        labels.tofile(folder / LABELS)
        np.savez(
            folder / CLUSTERS,
            centres=np.concatenate(centres),
            owners=np.concatenate(owners),
            further=further,
            others=others,
            informativeness=weights,
        )

    def _occurrences(self, tokens: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Each clustered word, and its positions in the text, ascending."""
        order = np.argsort(tokens, kind="stable")
        edges = np.searchsorted(tokens[order], np.arange(self.text.vocabulary_size + 1))
        for word in self.clustered:
            yield word, order[edges[word] : edges[word + 1]]

    def _centres(self, word: int, positions: NDArray[np.int64], text: TextContexts) -> NDArray[np.float32]:
        spread = np.linspace(0, len(positions) - 1, min(self.contexts, len(positions))).astype(np.int64)
        points = text.at(positions[spread])
        points = points[points.any(1)]
        if len(points) < self.clusters:  # words that mostly stand alone
            return np.zeros((1, points.shape[1]), dtype=np.float32)
        return spherical_kmeans(points, self.clusters, np.random.default_rng(word))
