"""Huffman tree: a binary tree over a vocabulary in which frequent words have short paths (Huffman 1952; Mikolov et al.
2013, arXiv:1301.3781, §3.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def paths(counts: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The path from the root to each word: nodes int64 [V, D] and turns int64 [V, D].

    Inner nodes are numbered 0 … V − 2, the root last. A turn is 1 for right and 0 for left; both are −100 beyond the
    word. A count of 0 is treated as 1. D is the length of the longest path, 0 for a vocabulary of one word.
    """
    size = len(counts)
    order = np.argsort(np.maximum(counts, 1), kind="stable")
    # two queues, both ascending: words not yet merged, and nodes in the order of their creation
    weights = [*np.maximum(counts, 1)[order].tolist(), *[0] * (size - 1)]
    parent, turn = np.zeros(2 * size - 1, dtype=np.int64), np.zeros(2 * size - 1, dtype=np.int64)
    word, created = 0, size
    for node in range(size, 2 * size - 1):
        merged = 0
        for side in (0, 1):
            if word < size and (created >= node or weights[word] <= weights[created]):
                child, word = word, word + 1
            else:
                child, created = created, created + 1
            parent[child], turn[child] = node, side
            merged += weights[child]
        weights[node] = merged

    depth = np.zeros(2 * size - 1, dtype=np.int64)
    for node in range(2 * size - 3, -1, -1):
        depth[node] = depth[parent[node]] + 1
    nodes = np.full((size, int(depth[:size].max(initial=0))), -100, dtype=np.int64)
    turns = nodes.copy()
    at = np.arange(size)
    for _ in range(nodes.shape[1]):
        climbing = np.flatnonzero(depth[at] > 0)
        below = at[climbing]
        words, step = order[climbing], depth[below] - 1
        nodes[words, step], turns[words, step] = parent[below] - size, turn[below]
        at[climbing] = parent[below]
    return nodes, turns
