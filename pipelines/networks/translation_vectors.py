"""Vectors of the entities of a graph, in which a relation is a translation (Bordes et al. 2013, "Translating embeddings
for modeling multi-relational data", §2, algorithm 1)."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

MARGIN = 1.0
"""γ of the paper."""
RATE = 0.05
EPOCHS = 100
BATCHES = 10
"""Updates of an epoch."""


@lru_cache(maxsize=4)
def translation_vectors(
    facts: tuple[tuple[int, int, int], ...], entities: int, width: int, epochs: int = EPOCHS
) -> NDArray[np.float32]:
    """float32 [entities, width]: vectors of length 1 with h + r ≈ t for the `facts` (h, r, t), indices from 0.

    Minimises Σ [γ + ‖h + r − t‖₂ − ‖h′ + r − t′‖₂]₊ over facts and copies of them with another head or another tail, by
    stochastic gradient descent. A pure function of its arguments. An entity without facts has a random vector.
    """
    random = np.random.default_rng(0)
    known = np.asarray(facts, dtype=np.int64).reshape(-1, 3)
    bound = 6 / np.sqrt(width)
    vectors = _unit(random.uniform(-bound, bound, (entities, width)))
    relations = _unit(random.uniform(-bound, bound, (int(known[:, 1].max(initial=-1)) + 1, width)))
    for _ in range(epochs):
        for batch in np.array_split(random.permutation(known), BATCHES):
            if len(batch):
                descend(vectors, relations, batch, _corrupted(batch, entities, random))
        vectors = _unit(vectors)
    result: NDArray[np.float32] = vectors.astype(np.float32)
    result.flags.writeable = False
    return result


def descend(
    vectors: NDArray[np.float64], relations: NDArray[np.float64], true: NDArray[np.int64], false: NDArray[np.int64]
) -> None:
    """One step, in place, down the gradient of the sum over the facts `true` [N, 3] and their copies `false` [N, 3]."""
    right, wrong = (vectors[one[:, 0]] + relations[one[:, 1]] - vectors[one[:, 2]] for one in (true, false))
    lengths = [np.linalg.norm(one, axis=1, keepdims=True).clip(1e-12) for one in (right, wrong)]
    active = MARGIN + lengths[0] - lengths[1] > 0
    for rows, difference, length, sign in ((true, right, lengths[0], -1.0), (false, wrong, lengths[1], 1.0)):
        step = sign * RATE * np.where(active, difference / length, 0.0)
        np.add.at(vectors, rows[:, 0], step)
        np.add.at(relations, rows[:, 1], step)
        np.add.at(vectors, rows[:, 2], -step)


def _corrupted(facts: NDArray[np.int64], entities: int, random: np.random.Generator) -> NDArray[np.int64]:
    """`facts` [N, 3] with another head or another tail."""
    false = facts.copy()
    side = np.where(random.random(len(facts)) < 0.5, 0, 2)
    false[np.arange(len(facts)), side] = random.integers(entities, size=len(facts))
    return false


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """`rows` [N, width] with length 1."""
    result: NDArray[np.float64] = rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(1e-12)
    return result
