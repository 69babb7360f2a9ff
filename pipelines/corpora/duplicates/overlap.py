"""Equality of texts, and the overlap of one text with another.

Words are runs of letters and digits without case; every Han or kana character is a word of its own. Two texts are equal
when their words are equal. Overlap is the overlap coefficient of their sets of n-grams of words:
`|A ∩ B| / min(|A|, |B|)`, so that a short text inside a long one counts as much as a copy (n = 13 as in
Brown et al. 2020, arXiv:2005.14165, appendix C).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from pipelines.corpora.duplicates.shingles import Letters, Shingle, Unit, batches

_HAN_AND_KANA = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_HAN_AND_KANA}]|[^\W_{_HAN_AND_KANA}]+")
Pairs = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""[pairs] each: index of a text, index of a text that it overlaps, and how much, 0 to 1."""
_PREFIX_BITS = 24
"""Bits of a hash that address a prefix table, which rules out nearly all n-grams that are not in an index."""


def words(text: str) -> list[str]:
    """Words of a text, in order."""
    return _WORD.findall(text.casefold())


def text_key(text: str) -> bytes:
    """16-byte key that equal texts share. A text without words is equal only to itself."""
    return blake2b((" ".join(words(text)) or text.strip()).encode(), digest_size=16).digest()


class OverlapIndex:
    """Index of the n-grams of evaluation texts, to measure how much of them occurs in other texts."""

    def __init__(self, texts: Iterable[str], length: int, unit: Unit = "words") -> None:
        self._shingle = Shingle(unit, length)
        grams, owners, count = [np.empty(0, np.uint64)], [np.empty(0, np.int64)], 0
        for batch in batches(texts):
            hashes, ends = Letters.of(batch).shingles(self._shingle)
            grams.append(hashes)
            owners.append(np.repeat(np.arange(count, count + len(batch)), np.diff(ends)))
            count += len(batch)
        gram, owner = np.concatenate(grams), np.concatenate(owners)
        order = np.lexsort((owner, gram))
        gram, owner = gram[order], owner[order]
        new = np.append(True, (gram[1:] != gram[:-1]) | (owner[1:] != owner[:-1]))[: len(gram)]
        gram, self._owners = gram[new], owner[new]
        self.sizes = np.bincount(self._owners, minlength=count)
        """[texts] Number of distinct n-grams of each evaluation text."""
        self.grams, starts = np.unique(gram, return_index=True)
        """Distinct n-grams of all evaluation texts, ascending."""
        self._starts = np.append(starts, len(gram))
        self._begins = np.zeros(2**_PREFIX_BITS, np.bool_)
        self._begins[self.grams >> np.uint64(64 - _PREFIX_BITS)] = True

    def overlap(self, text: str) -> float:
        """Largest overlap of `text` with any one evaluation text, 0 to 1. Texts shorter than an n-gram give 0."""
        return float(self.best(Letters.of([text]))[0][0])

    def best(self, letters: Letters) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Largest overlap of each text with any one evaluation text, and the index of that text; 0 and -1 for none."""
        largest, which = np.zeros(len(letters.texts)), np.full(len(letters.texts), -1)
        text, owner, overlap = largest_of_each(*self.pairs(letters))
        largest[text], which[text] = overlap, owner
        return largest, which

    def pairs(self, letters: Letters) -> Pairs:
        """Texts with a common n-gram: index in the batch, index of the evaluation text, and their overlap."""
        hashes, ends = letters.shingles(self._shingle)
        position, gram = self.matches(hashes)
        if not len(position):
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        text = np.searchsorted(ends, position, side="right") - 1
        pairs = np.unique(np.stack([text, gram]), axis=1)
        text, gram = pairs[0], pairs[1]
        # one entry for every n-gram in every evaluation text that contains it
        counts = self._starts[gram + 1] - self._starts[gram]
        inside = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        owner = self._owners[np.repeat(self._starts[gram], counts) + inside]
        both, shared = np.unique(np.stack([np.repeat(text, counts), owner]), axis=1, return_counts=True)
        text, owner = both[0], both[1]
        distinct = {each: len(np.unique(hashes[ends[each] : ends[each + 1]])) for each in np.unique(text).tolist()}
        return text, owner, shared / np.minimum(self.sizes[owner], [distinct[each] for each in text.tolist()])

    def matches(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Which of these n-grams are in the index: their positions in `hashes`, and in `grams`."""
        possible = np.flatnonzero(self._begins[hashes >> np.uint64(64 - _PREFIX_BITS)])
        if not len(possible):
            return possible, possible
        position = np.minimum(np.searchsorted(self.grams, hashes[possible]), len(self.grams) - 1)
        same = self.grams[position] == hashes[possible]
        return possible[same], position[same]

    def covered(self, seen: NDArray[np.bool_]) -> NDArray[np.int64]:
        """[texts] Number of distinct n-grams of each evaluation text that are marked in `seen` [grams]."""
        owned = np.repeat(seen, np.diff(self._starts))
        return np.bincount(self._owners[owned], minlength=len(self.sizes))


def largest_of_each(text: NDArray[np.int64], other: NDArray[np.int64], overlap: NDArray[np.float64]) -> Pairs:
    """The pair of the largest overlap of every `text`, the first of `other` where several are as large."""
    order = np.lexsort((other, -overlap, text))
    first = order[np.append(True, text[order][1:] != text[order][:-1])[: len(order)]]
    return text[first], other[first], overlap[first]
