"""Runs of words or letters of many texts at once, as 64-bit hashes in arrays.

    hashes, ends = shingles(["To be, or not to be", …], Shingle("words", 5))    # text i: hashes[ends[i]:ends[i + 1]]

A text is read in Unicode's compatibility form without case (NFKC, then case folding); what is neither letter nor digit only
parts words. A unit is a word in languages that are written with spaces, where every Han or kana character is a word of its
own; in the others it is a letter. Everything is computed for a whole batch of texts at once: a Python loop over words
would take five times as long.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import accumulate
from typing import Literal

import numpy as np
from numpy.typing import NDArray

BATCH = 2**19
"""Characters of a batch: some 30 MB of arrays."""
LETTERS = frozenset({"th", "lo", "km", "my", "bo"})
"""Languages written without spaces between words, and in other characters than those that are words of their own."""

Hashes = NDArray[np.uint64]
Ends = NDArray[np.int64]
Unit = Literal["words", "letters"]

_BASE = 0x9E3779B97F4A7C15
_HAN_AND_KANA = ((0x3040, 0x3100), (0x3400, 0xA000), (0xF900, 0xFB00), (0x20000, 0x32000))
_JAMO = ((0x1161, 0x1176), (0x11A8, 0x11C3))
_LAST = 0x32400
"""No letter or digit of Unicode 16 stands beyond."""
_MARK = re.compile(r"(<<|>>|\[\[|\]\])")
_PARTED = np.uint32(1 << 31)
_NUMBER = np.uint8(4)
_HAN = np.uint8(2)
_LETTER = np.uint8(1)


@dataclass(frozen=True)
class Shingle:
    """A run of `length` units."""

    unit: Unit
    length: int


def unit_of(language: str) -> Unit:
    """What runs of text are counted in."""
    return "letters" if language in LETTERS else "words"


def folded(text: str) -> str:
    """The form in which texts are compared."""
    return unicodedata.normalize("NFKC", text).casefold()


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """The texts in order, as many at a time as make a batch, and at least one."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and size + len(text) > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    if batch:
        yield batch


@dataclass(frozen=True)
class Letters:
    """The letters and digits of a batch of texts: `codes[ends[i]:ends[i + 1]]` are those of text i."""

    texts: Sequence[str]
    codes: NDArray[np.uint32]
    kinds: NDArray[np.uint8]
    apart: NDArray[np.bool_]
    """Whether something that is neither stands before it; true at the beginning of a text."""
    ends: Ends

    @classmethod
    def of(cls, texts: Sequence[str]) -> Letters:
        """Read a batch of texts."""
        folds, kinds_of, irregular = _folding()
        ends, codes = _code_points(texts)
        strange = np.flatnonzero(irregular[codes])
        if len(strange):
            forms = list(texts)
            for number in np.unique(np.searchsorted(ends, strange, side="right") - 1).tolist():
                forms[number] = folded(forms[number])
            ends, codes = _code_points(forms)
        codes = folds[codes]
        kinds = kinds_of[codes]
        taken = np.flatnonzero(kinds)
        apart = np.empty(len(taken), np.bool_)
        apart[:1] = True
        np.greater(np.diff(taken), 1, out=apart[1:])
        inside = np.searchsorted(taken, ends)
        begin = inside[:-1]
        apart[begin[begin < len(taken)]] = True
        return cls(texts, codes[taken], kinds[taken], apart, inside.astype(np.int64))

    def text_keys(self) -> Hashes:
        """[texts, 2] 16 bytes that two texts share when their letters and digits are the same, in the same order.

        What stands between them does not count, but for numbers: 1.5 is not 15; and for << >> and [[ ]], with which sets
        of relations mark what a sentence is asked about. A text without any is only the same as itself.
        """
        number = self.kinds & _NUMBER != 0
        parted = self.apart & number
        parted[1:] &= number[:-1]
        parted[self.ends[:-1][self.ends[:-1] < len(parted)]] = False
        content = memoryview(np.where(parted, self.codes | _PARTED, self.codes).tobytes())
        found = bytearray()
        for text, begin, end in zip(self.texts, self.ends[:-1].tolist(), self.ends[1:].tolist(), strict=True):
            part: bytes | memoryview = content[4 * begin : 4 * end]
            if begin == end:
                part = b"\0" + text.strip().encode("utf-8", "surrogatepass")
            elif "<<" in text or "[[" in text:
                part = bytes(part) + _marks(text)
            found += blake2b(part, digest_size=16).digest()
        return np.frombuffer(bytes(found), np.uint64).reshape(-1, 2)

    def units(self, unit: Unit) -> tuple[Hashes, Ends]:
        """The hash of every word or letter, and where those of each text end."""
        if unit == "letters":
            return _mixed(self.codes.astype(np.uint64)), self.ends
        if not len(self.codes):
            return np.empty(0, np.uint64), self.ends
        han = self.kinds & _HAN != 0
        first = self.apart | han
        first[1:] |= han[:-1]
        starts = np.flatnonzero(first)
        sizes = np.diff(starts, append=len(self.codes))
        place = np.arange(len(self.codes)) - np.repeat(starts, sizes)
        # a letter and its place in the word make a number; a word is the sum of what these are mixed to
        mixed = _mixed(self.codes.astype(np.uint64) | (place.astype(np.uint64) << np.uint64(21)))
        return _mixed(np.add.reduceat(mixed, starts)), np.searchsorted(starts, self.ends).astype(np.int64)

    def shingles(self, shingle: Shingle, shorter: bool = False) -> tuple[Hashes, Ends]:
        """The hash of every run of units inside a text, and where those of each text end.

        A text with fewer units has no run, or, where `shorter` is asked for, is one.
        """
        units, ends = self.units(shingle.unit)
        return runs(units, ends, shingle.length, shorter)


def shingles(texts: Sequence[str], shingle: Shingle, shorter: bool = False) -> tuple[Hashes, Ends]:
    """`Letters.of(texts).shingles(…)`."""
    return Letters.of(texts).shingles(shingle, shorter)


def runs(units: Hashes, ends: Ends, length: int, shorter: bool) -> tuple[Hashes, Ends]:
    """The hashes of all runs of `length` neighbours of one text: polynomials of them, from sums over prefixes."""
    powers, inverses = _powers(_rounded(len(units)))
    sums = np.zeros(len(units) + 1, np.uint64)
    np.cumsum(units * powers[: len(units)], out=sums[1:])
    sizes = np.diff(ends)
    counts = np.maximum(sizes - length + 1, 0)
    if shorter:
        counts = np.where(sizes > 0, np.maximum(counts, 1), 0)
    found = np.zeros(len(ends), np.int64)
    np.cumsum(counts, out=found[1:])
    begin = np.arange(found[-1]) - np.repeat(found[:-1] - ends[:-1], counts)
    end = np.minimum(begin + length, np.repeat(ends[1:], counts))
    return _mixed((sums[end] - sums[begin]) * inverses[begin]), found


def _marks(text: str) -> bytes:
    """Every mark of a text, after how many letters and digits it stands."""
    *pieces, _ = _MARK.split(text)
    before = accumulate(sum(map(str.isalnum, folded(piece))) for piece in pieces[::2])
    return "".join(f"\0{count}{mark}" for count, mark in zip(before, pieces[1::2], strict=True)).encode()


def _mixed(numbers: Hashes) -> Hashes:
    """The finaliser of splitmix64 (Steele et al. 2014, doi:10.1145/2660193.2660195): every bit moves every other."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _rounded(count: int) -> int:
    """A few sizes only, so that few tables of powers are made."""
    return max(BATCH, 1 << max(count - 1, 1).bit_length())


@cache
def _powers(count: int) -> tuple[Hashes, Hashes]:
    """The powers of the base and of its inverse modulo 2^64."""
    found = []
    for base in (_BASE, pow(_BASE, -1, 2**64)):
        factors = np.full(count, base, np.uint64)
        factors[0] = 1
        found.append(np.multiply.accumulate(factors))
    return found[0], found[1]


def _code_points(texts: Sequence[str]) -> tuple[Ends, NDArray[np.uint32]]:
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=ends[1:])
    return ends, np.frombuffer("".join(texts).encode("utf-32-le", "surrogatepass"), np.uint32)


@cache
def _folding() -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.bool_]]:
    """For every code point: what it is folded to, what kind it is, and whether only its whole text can tell.

    The last is so for what becomes several letters, and for what may join with the code point before it. Kinds are 0 for
    neither letter nor digit, or else a sum of letter, Han or kana character, and digit.
    """
    folds = np.arange(0x110000, dtype=np.uint32)
    kinds = np.zeros(0x110000, np.uint8)
    irregular = np.zeros(0x110000, np.bool_)
    points = [chr(code) for code in range(_LAST)]
    kinds[:_LAST] = np.fromiter(map(str.isalnum, points), np.uint8, _LAST) * _LETTER
    kinds[:_LAST] |= np.fromiter(map(str.isdecimal, points), np.uint8, _LAST) * _NUMBER
    for low, high in _HAN_AND_KANA:
        kinds[low:high][kinds[low:high] > 0] |= _HAN
    joining = {chr(code) for low, high in _JAMO for code in range(low, high)}
    changed = []
    for code, point in enumerate(points):
        form = folded(point)
        if unicodedata.combining(point):
            joining.add(point)
        if form != point:
            changed.append((code, form))
        if len(parts := unicodedata.decomposition(point).split()) == 2 and not parts[0].startswith("<"):
            joining.add(chr(int(parts[1], 16)))
    for point in joining:
        irregular[ord(point)] = True
    for code, form in changed:
        if len(form) == 1:
            folds[code] = ord(form)
            irregular[code] |= irregular[ord(form)]
        elif any(map(str.isalnum, form)) or any(irregular[ord(one)] for one in form):
            irregular[code] = True
        else:
            folds[code] = ord(" ")
    return folds, kinds, irregular
