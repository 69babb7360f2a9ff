"""Pseudo-random permutations of ranges of any size in constant memory: every element is computed, none is stored.

A Feistel network permutes the integers of 2 · half bits, whatever its round function is (Luby & Rackoff 1988); a result
outside the requested range is encrypted again until it is inside, which permutes the range (cycle walking: Black &
Rogaway 2002, §4). Mitchell et al. 2021 (arXiv:2106.06161) shuffle arrays on GPUs in this way and test the order; as
there, the halves may differ by one bit, so that less than half of the integers need cycle walking.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FACTOR = np.uint64(0xD1342543DE82EF95)
"""Multiplier of good spectral quality (Steele & Vigna 2021, table 6)."""
ROUNDS = 10
"""Rounds of the network. Four suffice for large halves; halves of one or two bits need more until all orders are about
equally likely."""
BLOCK_SIZE = 4096
"""Number of elements computed together, to share numpy's cost per call among the steps that follow."""


class PermutedOrder:
    """A permutation of 0 … `count` − 1, determined by `key`; each element is computed independently."""

    def __init__(self, key: tuple[int, ...], count: int) -> None:
        bits = max(2, (count - 1).bit_length())
        self.count = count
        self._low = np.uint64(bits // 2)
        self._masks = (np.uint64((1 << (bits // 2)) - 1), np.uint64((1 << (bits - bits // 2)) - 1))
        self._keys = np.random.SeedSequence(key).generate_state(ROUNDS, np.uint64)

    def __getitem__(self, indices: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, of the shape of `indices`: the elements at `indices`, all of which are in 0 … `count` − 1."""
        elements = self._encrypted(indices.astype(np.uint64).ravel())
        while len(outside := np.flatnonzero(elements >= self.count)):
            elements[outside] = self._encrypted(elements[outside])
        return elements.astype(np.int64).reshape(indices.shape)

    def _encrypted(self, values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        # each half in turn is XORed with a hash of the other
        small, large = self._masks
        low, high = values & small, values >> self._low
        for at in range(0, ROUNDS, 2):
            low ^= _hashed(high ^ self._keys[at]) & small
            high ^= _hashed(low ^ self._keys[at + 1]) & large
        result: NDArray[np.uint64] = (high << self._low) | low
        return result


def _hashed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """A hash of each value, computed in place, whose lower bits each depend on all bits of the value. Two
    multiplications, since the upper half of a single product changes by a constant when the value changes by one."""
    values *= FACTOR
    values ^= values >> np.uint64(32)
    values *= FACTOR
    values >>= np.uint64(32)
    return values


def permuted_items(key: tuple[int, ...], count: int, step: int, size: int) -> NDArray[np.int64]:
    """int64 [size]: the elements that step `step` reads of a permutation of `count` elements, starting over at its
    end."""
    together = max(1, BLOCK_SIZE // size)
    block, within = divmod(step, together)
    return _block(key, count, block * together * size, together * size)[within * size : (within + 1) * size]


@lru_cache(maxsize=4)
def _block(key: tuple[int, ...], count: int, begin: int, size: int) -> NDArray[np.int64]:
    return PermutedOrder(key, count)[np.arange(begin, begin + size, dtype=np.int64) % count]
