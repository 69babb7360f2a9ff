"""The highest-scoring dependency tree of a sentence: maximum spanning arborescences with one arc from the root.

Chu & Liu 1965 and Edmonds 1967, as parsers use them (McDonald et al. 2005, H05-1066): every word takes its best head;
a cycle is contracted into one node, whose arcs from outside are scored by what entering the cycle there costs. That
only one word is attached to the root follows from lowering the score of every arc from it by more than a tree can gain
by a second one, since any tree has at least one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

ROOT = 0
"""Node of the root; words are 1 … W."""


def best_tree(scores: NDArray[np.float64]) -> list[int]:
    """Head of each of W words in the tree with the highest sum of `scores` [W, W + 1]: the root's first, then the
    words'. Scores of a word as its own head are ignored. All others are finite."""
    words = len(scores)
    if words == 0:
        return []
    arcs = np.full((words + 1, words + 1), -np.inf)
    arcs[1:] = scores
    np.fill_diagonal(arcs, -np.inf)
    finite = arcs[np.isfinite(arcs)]
    arcs[1:, ROOT] -= (finite.max() - finite.min() + 1) * (words + 1)
    return [int(head) for head in _arborescence(arcs)[1:]]


def _arborescence(arcs: NDArray[np.float64]) -> NDArray[np.int64]:
    """int64 [N]: head of each node of the maximum spanning arborescence from node 0, by the scores `arcs` [N, N] of
    dependents and heads; −inf where there is no arc. The entry of the root means nothing."""
    heads: NDArray[np.int64] = arcs.argmax(1)
    heads[ROOT] = ROOT
    cycle = _cycle(heads)
    if cycle is None:
        return heads
    inside = np.zeros(len(arcs), dtype=bool)
    inside[cycle] = True
    outside = np.flatnonzero(~inside)  # the root is the first of them
    # node `new` of the smaller graph stands for the cycle
    new = len(outside)
    smaller = np.full((new + 1, new + 1), -np.inf)
    smaller[:new, :new] = arcs[np.ix_(outside, outside)]
    # an arc into the cycle takes the place of the arc of the node that it enters
    entering = arcs[np.ix_(cycle, outside)] - arcs[cycle, heads[cycle]][:, None]
    smaller[new, :new] = entering.max(0)
    leaving = arcs[np.ix_(outside, cycle)]
    smaller[:new, new] = leaving.max(1)
    chosen = _arborescence(smaller)
    result = heads.copy()
    for node, head in enumerate(chosen[:new].tolist()):
        result[outside[node]] = outside[head] if head < new else cycle[leaving[node].argmax()]
    above = int(chosen[new])
    result[cycle[entering[:, above].argmax()]] = outside[above]
    result[ROOT] = ROOT
    return result


def _cycle(heads: NDArray[np.int64]) -> NDArray[np.int64] | None:
    """int64 [nodes of a cycle]: one that following `heads` leads into; None where all lead to the root."""
    state = np.zeros(len(heads), dtype=np.int64)  # the number of the walk that came by
    state[ROOT] = -1
    for start in range(1, len(heads)):
        node = start
        while state[node] == 0:
            state[node] = start
            node = int(heads[node])
        if state[node] == start:
            cycle = [node]
            while (after := int(heads[cycle[-1]])) != node:
                cycle.append(after)
            return np.asarray(cycle, dtype=np.int64)
    return None
