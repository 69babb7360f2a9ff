"""Distances and depths in dependency trees, and minimum spanning trees of predicted distances."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def depths(heads: Sequence[int]) -> NDArray[np.int64]:
    """Number of edges between each word and the root, [T]; `heads` counts from 1, the root's head is 0."""
    result = np.full(len(heads), -1, dtype=np.int64)
    for word in range(len(heads)):
        path, here = [], word
        while result[here] < 0 and heads[here] != 0:
            path.append(here)
            here = heads[here] - 1
        if result[here] < 0:
            result[here] = 0
        for passed in reversed(path):
            result[passed] = result[heads[passed] - 1] + 1
    return result


def distances(heads: Sequence[int]) -> NDArray[np.int64]:
    """Number of edges on the path between every two words, [T, T]."""
    size = len(heads)
    result = np.zeros((size, size), dtype=np.int64)
    # a word is one edge further than its head from every word that was placed before
    order = np.argsort(depths(heads), kind="stable")
    for number, word in enumerate(order[1:], 1):
        placed = order[:number]
        result[word, placed] = result[placed, word] = result[heads[word] - 1, placed] + 1
    return result


def edges(heads: Sequence[int], kept: NDArray[np.bool_]) -> set[tuple[int, int]]:
    """The arcs between words that are `kept` [T], the lower index first."""
    return {
        (min(word, head - 1), max(word, head - 1))
        for word, head in enumerate(heads)
        if head != 0 and kept[word] and kept[head - 1]
    }


def spanning_tree(distance: NDArray[Any], kept: NDArray[np.bool_]) -> set[tuple[int, int]]:
    """Edges of the minimum spanning tree of `distance` [T, T] over the words that are `kept` [T], by Prim's algorithm.

    Of equal edges, the one whose outer word comes first is taken.
    """
    words = np.flatnonzero(kept)
    if len(words) < 2:
        return set()
    inner = distance[np.ix_(words, words)].astype(np.float64)
    outside = np.ones(len(words), dtype=bool)
    outside[0] = False
    nearest, source = inner[0].copy(), np.zeros(len(words), dtype=np.int64)
    tree = set()
    for _ in range(len(words) - 1):
        chosen = int(np.where(outside, nearest, np.inf).argmin())
        pair = sorted((int(words[chosen]), int(words[source[chosen]])))
        tree.add((pair[0], pair[1]))
        outside[chosen] = False
        closer = outside & (inner[chosen] < nearest)
        nearest[closer], source[closer] = inner[chosen][closer], chosen
    return tree
