"""gopher_repetition: the repetition rules of MassiveText."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from pipelines.corpora.cleaning import Filter, FilterResult
from pipelines.corpora.cleaning.words import why_not_countable, words_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Thresholds = tuple[tuple[Annotated[int, Field(ge=1)], Annotated[float, Field(ge=0, le=1)]], ...]

_PARAGRAPHS = re.compile(r"\n\s*\n")
_TOP = {"zh": ((2, 0.256), (3, 0.201), (4, 0.171))}
_DEFAULT_TOP = ((2, 0.20), (3, 0.18), (4, 0.16))
_DUPLICATE = {"zh": ((5, 0.198), (6, 0.182), (7, 0.167), (8, 0.154), (9, 0.14), (10, 0.127))}
_DEFAULT_DUPLICATE = ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))


class GopherRepetition(Filter, name="gopher_repetition"):
    """Drop texts in which too many lines, paragraphs or word n-grams are duplicates.

    Rae et al. 2021, §A.1.1, table A1. Every occurrence after the first is a duplicate; characters are those of words,
    and a character in several duplicate n-grams counts once. Chinese words are segmented by jieba, and the n-gram
    thresholds are those of FineWeb2 (Penedo et al. 2025, arXiv:2506.20920, configuration cmn_Hani).
    """

    paper: ClassVar[str] = "arXiv:2112.11446"
    libraries: ClassVar[tuple[str, ...]] = ("rjieba",)

    lines: float = Field(default=0.30, ge=0, le=1)
    """Maximum share of duplicate lines."""
    paragraphs: float = Field(default=0.30, ge=0, le=1)
    """Maximum share of duplicate paragraphs."""
    line_characters: float = Field(default=0.20, ge=0, le=1)
    """Maximum share of characters in duplicate lines."""
    paragraph_characters: float = Field(default=0.20, ge=0, le=1)
    """Maximum share of characters in duplicate paragraphs."""
    top_ngrams: Thresholds | None = None
    """[n, maximum share of characters in the most frequent n-gram]; null: the paper's, n from 2 to 4."""
    duplicate_ngrams: Thresholds | None = None
    """[n, maximum share of characters in duplicate n-grams]; null: the paper's, n from 5 to 10."""

    def problem(self, language: str) -> str | None:
        """Words can be counted only where they can be segmented."""
        return why_not_countable(language)

    def make_filter(self, language: str, root: Path) -> Callable[[str], FilterResult]:
        """A function that filters texts of a language."""
        words_in = words_of(language)
        top = _TOP.get(language, _DEFAULT_TOP) if self.top_ngrams is None else self.top_ngrams
        duplicate = (
            _DUPLICATE.get(language, _DEFAULT_DUPLICATE) if self.duplicate_ngrams is None else self.duplicate_ngrams
        )

        def broken_rule(text: str) -> str | None:
            for kind, parts, share, characters in (
                ("line", text.split("\n"), self.lines, self.line_characters),
                ("paragraph", _PARAGRAPHS.split(text), self.paragraphs, self.paragraph_characters),
            ):
                again, length, total, whole = _duplicates(parts)
                if again > share * total:
                    return f"duplicate {kind}s"
                if length > characters * whole:
                    return f"characters in duplicate {kind}s"
            words = words_in(text)
            return _top_ngram(words, top) or _duplicate_ngrams(words, duplicate) if words else None

        return lambda text: (text, broken_rule(text))


def _duplicates(parts: list[str]) -> tuple[int, int, int, int]:
    """Over non-empty parts: duplicates and their characters; all parts and their characters."""
    contents = [content for part in parts if (content := part.strip())]
    once = set(contents)
    whole = sum(map(len, contents))
    return len(contents) - len(once), whole - sum(map(len, once)), len(contents), whole


def _top_ngram(words: list[str], thresholds: Thresholds) -> str | None:
    import numpy as np

    runs, lengths = _ngram_ids(words), _lengths(words)
    shares = dict(thresholds)
    for size in range(1, max(shares, default=0) + 1):
        codes = next(runs, None)
        if codes is None:
            return None
        counts = np.bincount(codes)
        most = int(counts.max())
        if most < 2:
            return None  # then no longer n-gram repeats either
        if size in shares:
            # of several most frequent n-grams, the longest
            ends = np.concatenate(([0], np.cumsum(lengths)))
            characters = int((ends[size:] - ends[:-size])[counts[codes] == most].max())
            if most * characters > shares[size] * ends[-1]:
                return f"top {size}-gram"
    return None


def _duplicate_ngrams(words: list[str], thresholds: Thresholds) -> str | None:
    import numpy as np

    runs, lengths = _ngram_ids(words), _lengths(words)
    shares = dict(thresholds)
    for size in range(1, max(shares, default=0) + 1):
        codes = next(runs, None)
        if codes is None:
            return None
        first = np.full(int(codes.max()) + 1, len(codes))
        np.minimum.at(first, codes, np.arange(len(codes)))
        again = np.flatnonzero(first[codes] != np.arange(len(codes)))
        if not len(again):
            return None  # then no longer n-gram repeats either
        if size in shares:
            steps = np.zeros(len(words) + 1, dtype=np.int64)
            np.add.at(steps, again, 1)
            np.add.at(steps, again + size, -1)
            if lengths[np.cumsum(steps[:-1]) > 0].sum() > shares[size] * lengths.sum():
                return f"duplicate {size}-grams"
    return None


def _ngram_ids(words: list[str]) -> Iterator[NDArray[np.int64]]:
    """For n = 1, 2, …: [words − n + 1] ids of all n-grams, from 0 without gaps; equal n-grams have equal ids."""
    import numpy as np

    ids: dict[str, int] = {}
    single = np.array([ids.setdefault(word, len(ids)) for word in words], dtype=np.int64)
    codes = single
    size = 1
    while True:
        yield codes
        size += 1
        if len(words) < size:
            return
        # exact, not a hash: the id of the shorter n-gram and the id of the next word
        _, codes = np.unique(codes[:-1] * len(ids) + single[size - 1 :], return_inverse=True)


def _lengths(words: list[str]) -> NDArray[np.int64]:
    import numpy as np

    return np.fromiter(map(len, words), dtype=np.int64, count=len(words))
