"""Shingles: runs of words or letters of many texts at once, as arrays of 64-bit hashes.

    hashes, ends = shingles(["To be, or not to be", …], Shingle("words", 5))    # text i: hashes[ends[i]:ends[i + 1]]

Texts are normalised to Unicode's compatibility form without case (NFKC, then case folding); characters that are neither
letters nor digits only separate words. The unit is a word, where every Han or kana character is a word of its own; in
other languages written without spaces it is a letter. Everything is computed for a whole batch of texts at once: a
Python loop over words would take five times as long.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import blake2b
from itertools import accumulate
from typing import Literal

import numpy as np
from numpy.typing import NDArray

BATCH = 2**19
"""Characters in a batch: about 30 MB of arrays."""
AT_ONCE = 2**20
"""Characters, words or runs that are computed at once: a batch of one long text has more."""
LETTERS = frozenset({"th", "lo", "km", "my", "bo"})
"""Languages written without spaces between words whose characters are not words of their own."""

Hashes = NDArray[np.uint64]
Ends = NDArray[np.int64]
Unit = Literal["words", "letters"]

_BASE = 0x9E3779B97F4A7C15
_HAN_AND_KANA = ((0x3040, 0x3100), (0x3400, 0xA000), (0xF900, 0xFB00), (0x20000, 0x32000))
_JAMO = ((0x1161, 0x1176), (0x11A8, 0x11C3))
_LAST = 0x32400
"""Unicode 16 has no letter or digit from this code point on."""
_MARK = re.compile(r"(<<|>>|\[\[|\]\])")
_SEPARATED = np.uint32(1 << 31)
_NUMBER = np.uint8(4)
_HAN = np.uint8(2)
_LETTER = np.uint8(1)


@dataclass(frozen=True)
class Shingle:
    """A run of `length` units."""

    unit: Unit
    length: int


def unit_of(language: str) -> Unit:
    """Unit of shingles for a language."""
    return "letters" if language in LETTERS else "words"


def folded(text: str) -> str:
    """Normalised form in which texts are compared: NFKC, case-folded."""
    return unicodedata.normalize("NFKC", text).casefold()


def batches(texts: Iterable[str]) -> Iterator[list[str]]:
    """Group texts, in order, into batches of at most BATCH characters, at least one text each."""
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
    """Letters and digits of a batch of texts: `codes[ends[i]:ends[i + 1]]` are those of text i."""

    texts: Sequence[str]
    codes: NDArray[np.uint32]
    kinds: NDArray[np.uint8]
    separated: NDArray[np.bool_]
    """Whether another character precedes it; true at the beginning of a text."""
    ends: Ends

    @classmethod
    def of(cls, texts: Sequence[str]) -> Letters:
        """Extract the letters and digits of a batch of texts."""
        folds, kinds_of, irregular = _folding()
        forms, strange = list(texts), set[int]()
        ends = _ends_of(forms)
        for begin, codes in _code_points(forms):
            at = begin + np.flatnonzero(irregular[codes])
            strange.update(np.unique(np.searchsorted(ends, at, side="right") - 1).tolist())
        for number in strange:
            forms[number] = folded(forms[number])
        ends = _ends_of(forms)
        inside = np.zeros(len(ends), np.int64)
        parts: list[tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.bool_]]] = []
        count, before = 0, -2
        for begin, codes in _code_points(forms):
            codes = folds[codes]
            kinds = kinds_of[codes]
            taken = np.flatnonzero(kinds)
            parts.append((codes[taken], kinds[taken], np.diff(begin + taken, prepend=before) > 1))
            here = slice(*np.searchsorted(ends, [begin, begin + len(codes)], side="right"))
            inside[here] = count + np.searchsorted(taken, ends[here] - begin)
            count += len(taken)
            before = begin + int(taken[-1]) if len(taken) else before
        if not parts:
            return cls(texts, np.empty(0, np.uint32), np.empty(0, np.uint8), np.empty(0, np.bool_), inside)
        codes, kinds, separated = (
            np.concatenate(part) if len(parts) > 1 else part[0] for part in zip(*parts, strict=True)
        )
        first = inside[:-1]
        separated[first[first < count]] = True
        return cls(texts, codes, kinds, separated, inside)

    def text_keys(self) -> Hashes:
        """[texts, 2] 16-byte keys that two texts share when they have the same letters and digits in the same order.

        Other characters are ignored, except between digits (1.5 is not 15) and except << >> and [[ ]], with which
        relation datasets mark the entities of a sentence. A text without letters or digits is equal only to itself.
        """
        number = self.kinds & _NUMBER != 0
        separated_number = self.separated & number
        separated_number[1:] &= number[:-1]
        separated_number[self.ends[:-1][self.ends[:-1] < len(separated_number)]] = False

        def content(begin: int, end: int) -> memoryview:
            codes = self.codes[begin:end]
            return memoryview(np.where(separated_number[begin:end], codes | _SEPARATED, codes).tobytes())

        whole = content(0, len(self.codes)) if len(self.codes) <= AT_ONCE else None
        keys = bytearray()
        for text, begin, end in zip(self.texts, self.ends[:-1].tolist(), self.ends[1:].tolist(), strict=True):
            digest = blake2b(digest_size=16)
            for at in range(begin, end, AT_ONCE):
                upto = min(end, at + AT_ONCE)
                digest.update(content(at, upto) if whole is None else whole[4 * at : 4 * upto])
            if begin == end:
                digest.update(b"\0" + text.strip().encode("utf-8", "surrogatepass"))
            elif "<<" in text or "[[" in text:
                digest.update(_marks(text))
            keys += digest.digest()
        return np.frombuffer(bytes(keys), np.uint64).reshape(-1, 2)

    def units(self, unit: Unit) -> tuple[Hashes, Ends]:
        """Hash of every word or letter, and the end index of each text."""
        if unit == "letters":
            return _mixed(self.codes.astype(np.uint64)), self.ends
        if not len(self.codes):
            return np.empty(0, np.uint64), self.ends
        han = self.kinds & _HAN != 0
        first = self.separated | han
        first[1:] |= han[:-1]
        starts = np.flatnonzero(first)
        hashes = np.empty(len(starts), np.uint64)
        for at in range(0, len(starts), AT_ONCE):
            words = starts[at : at + AT_ONCE]
            begin, end = words[0], starts[at + AT_ONCE] if at + AT_ONCE < len(starts) else len(self.codes)
            position = np.arange(begin, end) - np.repeat(words, np.diff(words, append=end))
            # a letter and its position in the word form a number; the hash of a word is the sum of their mixed values
            mixed = _mixed(self.codes[begin:end].astype(np.uint64) | (position.astype(np.uint64) << np.uint64(21)))
            hashes[at : at + AT_ONCE] = _mixed(np.add.reduceat(mixed, words - begin))
        return hashes, np.searchsorted(starts, self.ends).astype(np.int64)

    def shingles(self, shingle: Shingle, shorter: bool = False) -> tuple[Hashes, Ends]:
        """Hash of every run of units inside a text, and the end index of each text.

        A text with fewer units than a run has none or, with `shorter`, is one run itself.
        """
        units, ends = self.units(shingle.unit)
        return runs(units, ends, shingle.length, shorter)


def shingles(texts: Sequence[str], shingle: Shingle, shorter: bool = False) -> tuple[Hashes, Ends]:
    """`Letters.of(texts).shingles(…)`."""
    return Letters.of(texts).shingles(shingle, shorter)


def runs(units: Hashes, ends: Ends, length: int, shorter: bool) -> tuple[Hashes, Ends]:
    """Polynomial hashes of all runs of `length` consecutive units of one text, from prefix sums."""
    powers, inverses = _powers(_rounded(len(units)))
    sums = np.zeros(len(units) + 1, np.uint64)
    np.cumsum(units * powers[: len(units)], out=sums[1:])
    sizes = np.diff(ends)
    counts = np.maximum(sizes - length + 1, 0)
    if shorter:
        counts = np.where(sizes > 0, np.maximum(counts, 1), 0)
    run_ends = np.zeros(len(ends), np.int64)
    np.cumsum(counts, out=run_ends[1:])
    result = np.empty(run_ends[-1], np.uint64)
    for at in range(0, len(result), AT_ONCE):
        upto = min(len(result), at + AT_ONCE)
        between = np.clip(run_ends, at, upto)
        here: Ends = between[1:] - between[:-1]  # runs of each text
        begin = np.arange(at, upto) - np.repeat(run_ends[:-1] - ends[:-1], here)
        end = np.minimum(begin + length, np.repeat(ends[1:], here))
        result[at:upto] = _mixed((sums[end] - sums[begin]) * inverses[begin])
    return result, run_ends


def _marks(text: str) -> bytes:
    """Every mark of a text, with the number of letters and digits before it."""
    *segments, _ = _MARK.split(text)
    offsets = accumulate(sum(map(str.isalnum, folded(segment))) for segment in segments[::2])
    return "".join(f"\0{count}{mark}" for count, mark in zip(offsets, segments[1::2], strict=True)).encode()


def _mixed(numbers: Hashes) -> Hashes:
    """Finaliser of splitmix64 (Steele et al. 2014, doi:10.1145/2660193.2660195): each input bit affects all outputs."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    numbers = (numbers ^ (numbers >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return numbers ^ (numbers >> np.uint64(31))


def _rounded(count: int) -> int:
    """Round up to one of few sizes, so that few tables of powers are computed."""
    return max(BATCH, 1 << max(count - 1, 1).bit_length())


@lru_cache(maxsize=2)
def _powers(count: int) -> tuple[Hashes, Hashes]:
    """Powers of the base and of its inverse modulo 2^64."""
    powers = []
    for base in (_BASE, pow(_BASE, -1, 2**64)):
        factors = np.full(count, base, np.uint64)
        factors[0] = 1
        powers.append(np.multiply.accumulate(factors))
    return powers[0], powers[1]


def _ends_of(texts: Sequence[str]) -> Ends:
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=ends[1:])
    return ends


def _code_points(texts: Sequence[str]) -> Iterator[tuple[int, NDArray[np.uint32]]]:
    """The code points of all texts, at most AT_ONCE at a time, with the number of those before."""
    joined = "".join(texts)
    for begin in range(0, len(joined), AT_ONCE):
        part = joined[begin : begin + AT_ONCE]
        yield begin, np.frombuffer(part.encode("utf-32-le", "surrogatepass"), np.uint32)


@cache
def _folding() -> tuple[NDArray[np.uint32], NDArray[np.uint8], NDArray[np.bool_]]:
    """For every code point: its folded form, its kind, and whether it needs normalisation of the whole text.

    The last is true of code points that fold to several letters, and of those that may combine with the code point
    before them. The kind is 0 for neither letter nor digit, else a sum of the flags letter, Han or kana character, and
    digit.
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
