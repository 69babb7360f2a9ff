"""A random order of any number of things that is never written down: where the n-th of them stands, in constant memory.

A Feistel network permutes the numbers of 2 · half bits, whatever its round function is (Luby & Rackoff 1988); a number that
falls outside the wanted range is sent through again until it falls inside, which permutes the range (cycle walking: Black &
Rogaway 2002, §4). Mitchell et al. 2021 (arXiv:2106.06161) shuffle arrays on GPUs so and test the order; as there, the halves
may differ by one bit, so that less than half of the numbers walk.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

FACTOR = np.uint64(0xD1342543DE82EF95)
"""Of good spectral quality as a multiplier (Steele & Vigna 2021, table 6)."""
ROUNDS = 10
"""Of the network. Four are enough for large halves; halves of one or two bits take more until every order is about as likely."""
BLOCK_SIZE = 4096
"""Things whose places in an order are computed together: numpy's cost a call is shared by the steps that follow."""


class PermutedOrder:
    """A permutation of 0 … `count` − 1, fixed by `key`; each element is found by itself."""

    def __init__(self, key: tuple[int, ...], count: int) -> None:
        bits = max(2, (count - 1).bit_length())
        self.count = count
        self._low = np.uint64(bits // 2)
        self._masks = (np.uint64((1 << (bits // 2)) - 1), np.uint64((1 << (bits - bits // 2)) - 1))
        self._keys = np.random.SeedSequence(key).generate_state(ROUNDS, np.uint64)

    def __getitem__(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """int64, of the shape of `places`: what stands at each place, all of them in 0 … `count` − 1."""
        found = self._encrypted(places.astype(np.uint64).ravel())
        while len(outside := np.flatnonzero(found >= self.count)):
            found[outside] = self._encrypted(found[outside])
        return found.astype(np.int64).reshape(places.shape)

    def _encrypted(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        # one half is changed by a number that is drawn from the other, in turns
        small, large = self._masks
        low, high = numbers & small, numbers >> self._low
        for at in range(0, ROUNDS, 2):
            low ^= _drawn(high ^ self._keys[at]) & small
            high ^= _drawn(low ^ self._keys[at + 1]) & large
        result: NDArray[np.uint64] = (high << self._low) | low
        return result


def _drawn(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Numbers whose lower bits each hang on all bits of what is given, which is overwritten: two products, since the upper half
    of one alone changes by a constant when the number does by one."""
    numbers *= FACTOR
    numbers ^= numbers >> np.uint64(32)
    numbers *= FACTOR
    numbers >>= np.uint64(32)
    return numbers


def permuted_items(key: tuple[int, ...], count: int, step: int, size: int) -> NDArray[np.int64]:
    """int64 [size]: the things that step `step` reads of `count`, in the order of `key`, and again from the first."""
    together = max(1, BLOCK_SIZE // size)
    block, within = divmod(step, together)
    return _block(key, count, block * together * size, together * size)[within * size : (within + 1) * size]


@lru_cache(maxsize=4)
def _block(key: tuple[int, ...], count: int, begin: int, size: int) -> NDArray[np.int64]:
    return PermutedOrder(key, count)[np.arange(begin, begin + size, dtype=np.int64) % count]
