"""When are two texts the same, and how much of one stands in another?

Words are runs of letters and digits without case; every Han or kana character is a word of its own. Two texts are the
same when their words are. Overlap is the overlap coefficient of their sets of n-grams of words:
`|A ∩ B| / min(|A|, |B|)`, so that a short text inside a long one counts as much as a copy (n = 13 as in
Brown et al. 2020, arXiv:2005.14165, appendix C).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

_HAN_AND_KANA = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_HAN_AND_KANA}]|[^\W_{_HAN_AND_KANA}]+")
_BASE = np.uint64(0x9E3779B97F4A7C15)

Grams = NDArray[np.uint64]


def words(text: str) -> list[str]:
    """The words of a text, in order."""
    return _WORD.findall(text.casefold())


def text_key(text: str) -> bytes:
    """Sixteen bytes that two texts share when they are the same. A text without words is only the same as itself."""
    return blake2b((" ".join(words(text)) or text.strip()).encode(), digest_size=16).digest()


class OverlapIndex:
    """The n-grams of a set of evaluation texts, asked how much of them stands in other texts."""

    def __init__(self, texts: Iterable[str], length: int) -> None:
        self._length = length
        self._hash_of: dict[str, int] = {}
        found = [self._grams(text) for text in texts]
        self._sizes = np.array([len(grams) for grams in found], dtype=np.int64)
        grams = np.concatenate([*found, np.empty(0, np.uint64)])
        owners = np.repeat(np.arange(len(found)), self._sizes)
        order = np.argsort(grams, kind="stable")
        self._sorted, self._owners = grams[order], owners[order]

    def overlap(self, text: str) -> float:
        """The largest overlap of `text` with any one evaluation text, 0 to 1. Texts shorter than an n-gram give 0."""
        grams = self._grams(text)
        if not len(grams) or not len(self._sorted):
            return 0.0
        first = np.searchsorted(self._sorted, grams, side="left")
        found = self._sorted[np.minimum(first, len(self._sorted) - 1)] == grams
        if not found.any():
            return 0.0
        last = np.searchsorted(self._sorted, grams[found], side="right")
        owners = np.concatenate([self._owners[a:b] for a, b in zip(first[found], last, strict=True)])
        shared = np.bincount(owners, minlength=len(self._sizes))
        return float(np.max(shared / np.maximum(1, np.minimum(self._sizes, len(grams)))))

    def _grams(self, text: str) -> Grams:
        known = self._hash_of
        numbers = []
        for word in words(text):
            number = known.get(word)
            if number is None:
                number = int.from_bytes(blake2b(word.encode(), digest_size=8).digest(), "little")
                known[word] = number
            numbers.append(number)
        count = len(numbers) - self._length + 1
        if count < 1:
            return np.empty(0, np.uint64)
        hashes = np.array(numbers, dtype=np.uint64)
        grams = np.zeros(count, np.uint64)
        with np.errstate(over="ignore"):
            for offset in range(self._length):
                grams = grams * _BASE + hashes[offset : offset + count]
        return np.unique(grams)
