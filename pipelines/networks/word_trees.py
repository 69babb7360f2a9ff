"""Binary trees over the words of a vocabulary: random ones, those that vectors of the words suggest, and their paths
(Mnih & Hinton 2008, "A scalable hierarchical distributed language model", §4).

A tree over V words has nodes 0 … V − 1, the words, and V … 2V − 2, of which the last is the root; a node has a lower
number than its parent. It is two arrays [2V − 1]: the parent of each node, −1 of the root, and its side, 0 left and 1
right. Shapes: n words below a node, H elements of a vector, D depth of the deepest word.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Array = NDArray[np.float64]

ROUNDS = 10
"""Most rounds of expectation and maximisation for one node."""
POWER_ITERATIONS = 8
"""Power iterations that find the direction in which the words of a node differ most."""
LEAST_SHARE = 0.25
"""Smallest share of a node's words on one side, so that a path over V words has less than 2.5 log₂ V turns."""


class WordTree(NamedTuple):
    """A binary tree over words."""

    parents: Ids
    sides: Ids


def random_tree(order: Ids) -> WordTree:
    """A tree of the least depth over the words 0 … V − 1, which `order` [V] has from left to right."""
    return _divided(order, lambda words: np.arange(len(words)) >= len(words) // 2)


def learned_tree(vectors: Array) -> WordTree:
    """A tree whose nodes part the words by a mixture of two Gaussians over their `vectors` [V, H]."""
    return _divided(np.arange(len(vectors)), lambda words: halves(vectors[words]))


def _divided(order: Ids, right: Callable[[Ids], NDArray[np.bool_]]) -> WordTree:
    size = len(order)
    parents, sides = np.full(2 * size - 1, -1, dtype=np.int64), np.zeros(2 * size - 1, dtype=np.int64)
    created = 2 * size - 2
    pending = [(created, order)]
    while pending:
        node, words = pending.pop()
        if len(words) == 1:
            continue
        chosen = right(words)
        for side, part in enumerate((words[~chosen], words[chosen])):
            if len(part) == 1:
                child = int(part[0])
            else:
                created -= 1
                child = created
                pending.append((child, part))
            parents[child], sides[child] = node, side
    return WordTree(parents, sides)


def halves(vectors: Array) -> NDArray[np.bool_]:
    """bool [n]: the rows of `vectors` [n, H] that the second of two Gaussians explains better.

    They have one variance, the same in all directions, and begin as the halves in the direction in which the rows
    differ most; neither gets less than `LEAST_SHARE` of the rows.
    """
    centred = vectors - vectors.mean(axis=0)
    direction = centred[int((centred**2).sum(1).argmax())]
    for _ in range(POWER_ITERATIONS):
        direction = (centred @ direction) @ centred
        direction /= max(float(np.linalg.norm(direction)), np.finfo(float).tiny)
    scores = centred @ direction
    share = (scores > np.median(scores)).astype(np.float64)
    if len(vectors) > 2:
        for _ in range(ROUNDS):
            before, scores = share, log_odds(centred, share)
            share = 1 / (1 + np.exp(-np.clip(scores, -700, 700)))
            if np.array_equal(share > 0.5, before > 0.5):
                break
    least = int(np.ceil(LEAST_SHARE * len(vectors)))
    number = min(max(int((scores > 0).sum()), least), len(vectors) - least)
    chosen = np.zeros(len(vectors), dtype=bool)
    chosen[np.argsort(-scores, kind="stable")[:number]] = True
    return chosen


def log_odds(vectors: Array, share: Array) -> Array:
    """[n]: log of the odds that the second of two Gaussians made a row of `vectors` [n, H], of which it made the
    `share` [n] before: one step of expectation and maximisation."""
    second = float(np.clip(share.mean(), 1e-6, 1 - 1e-6))
    size = len(vectors)
    means = [(weight @ vectors) / max(float(weight.sum()), 1e-6) for weight in (1 - share, share)]
    distances = [((vectors - mean) ** 2).sum(1) for mean in means]
    variance = float((1 - share) @ distances[0] + share @ distances[1]) / (size * vectors.shape[1])
    odds: NDArray[np.float64] = (distances[0] - distances[1]) / (2 * max(variance, 1e-12))
    return odds + float(np.log(second / (1 - second)))


def tree_paths(tree: WordTree) -> tuple[Ids, Ids]:
    """The path from the root to each word: nodes [V, D], from 0 for the node V, and turns [V, D], 1 right and 0 left;
    both are −100 beyond the word."""
    size = (len(tree.parents) + 1) // 2
    depth = depths(tree)
    nodes = np.full((size, int(depth[:size].max(initial=0))), -100, dtype=np.int64)
    turns = nodes.copy()
    at = np.arange(size)
    for _ in range(nodes.shape[1]):
        words = np.flatnonzero(depth[at] > 0)
        below = at[words]
        step = depth[below] - 1
        nodes[words, step], turns[words, step] = tree.parents[below] - size, tree.sides[below]
        at[words] = tree.parents[below]
    return nodes, turns


def depths(tree: WordTree) -> Ids:
    """[2V − 1]: number of turns from the root to each node."""
    depth = np.zeros(len(tree.parents), dtype=np.int64)
    for node in range(len(depth) - 2, -1, -1):  # parents come first
        depth[node] = depth[tree.parents[node]] + 1
    return depth
