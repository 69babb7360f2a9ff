"""gopher_repetition: the rules by which MassiveText finds texts that say the same again and again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from pipelines.corpora.cleaning import Filter, Judgement
from pipelines.corpora.cleaning.words import unknown_words, words_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Thresholds = tuple[tuple[Annotated[int, Field(ge=1)], Annotated[float, Field(ge=0, le=1)]], ...]

_PARAGRAPHS = re.compile(r"\n\s*\n")
_TOP = {"zh": ((2, 0.256), (3, 0.201), (4, 0.171))}
_USUAL_TOP = ((2, 0.20), (3, 0.18), (4, 0.16))
_DUPLICATE = {"zh": ((5, 0.198), (6, 0.182), (7, 0.167), (8, 0.154), (9, 0.14), (10, 0.127))}
_USUAL_DUPLICATE = ((5, 0.15), (6, 0.14), (7, 0.13), (8, 0.12), (9, 0.11), (10, 0.10))


class GopherRepetition(Filter, name="gopher_repetition"):
    """Texts go of which too many lines, paragraphs or runs of words repeat others in the same text.

    Rae et al. 2021, §A.1.1, table A1. What comes after the first of its kind is a duplicate; characters are those of words,
    and one that lies in several duplicate runs counts once. In Chinese words are jieba's, and the thresholds for runs of words
    are those of FineWeb2 (Penedo et al. 2025, arXiv:2506.20920, configuration cmn_Hani).
    """

    paper: ClassVar[str] = "arXiv:2112.11446"
    libraries: ClassVar[tuple[str, ...]] = ("rjieba",)

    lines: float = Field(default=0.30, ge=0, le=1)
    """Share of lines that may be duplicates."""
    paragraphs: float = Field(default=0.30, ge=0, le=1)
    """Share of paragraphs that may be duplicates."""
    line_characters: float = Field(default=0.20, ge=0, le=1)
    """Share of characters that may lie in duplicate lines."""
    paragraph_characters: float = Field(default=0.20, ge=0, le=1)
    """Share of characters that may lie in duplicate paragraphs."""
    top_ngrams: Thresholds | None = None
    """Runs of n words: [n, share of characters that may lie in the most frequent one]; null: those of the paper, 2 to 4."""
    duplicate_ngrams: Thresholds | None = None
    """Runs of n words: [n, share of characters that may lie in duplicates]; null: those of the paper, 5 to 10."""

    def problem(self, language: str) -> str | None:
        """Words must be known to be counted."""
        return unknown_words(language)

    def judging(self, language: str, root: Path) -> Callable[[str], Judgement]:
        """The judge of texts in a language."""
        words_in = words_of(language)
        top = _TOP.get(language, _USUAL_TOP) if self.top_ngrams is None else self.top_ngrams
        duplicate = (
            _DUPLICATE.get(language, _USUAL_DUPLICATE) if self.duplicate_ngrams is None else self.duplicate_ngrams
        )

        def broken(text: str) -> str | None:
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
            return _top_run(words, top) or _duplicate_runs(words, duplicate) if words else None

        return lambda text: (text, broken(text))


def _duplicates(parts: list[str]) -> tuple[int, int, int, int]:
    """Of parts that say something: how many repeat another and their characters; how many there are and their characters."""
    said = [bare for part in parts if (bare := part.strip())]
    once = set(said)
    whole = sum(map(len, said))
    return len(said) - len(once), whole - sum(map(len, once)), len(said), whole


def _top_run(words: list[str], thresholds: Thresholds) -> str | None:
    import numpy as np

    runs, lengths = _runs(words), _lengths(words)
    shares = dict(thresholds)
    for size in range(1, max(shares, default=0) + 1):
        codes = next(runs, None)
        if codes is None:
            return None
        counts = np.bincount(codes)
        most = int(counts.max())
        if most < 2:
            return None  # then no longer run repeats either
        if size in shares:
            # of several most frequent runs, the longest
            ends = np.concatenate(([0], np.cumsum(lengths)))
            characters = int((ends[size:] - ends[:-size])[counts[codes] == most].max())
            if most * characters > shares[size] * ends[-1]:
                return f"top {size}-gram"
    return None


def _duplicate_runs(words: list[str], thresholds: Thresholds) -> str | None:
    import numpy as np

    runs, lengths = _runs(words), _lengths(words)
    shares = dict(thresholds)
    for size in range(1, max(shares, default=0) + 1):
        codes = next(runs, None)
        if codes is None:
            return None
        first = np.full(int(codes.max()) + 1, len(codes))
        np.minimum.at(first, codes, np.arange(len(codes)))
        again = np.flatnonzero(first[codes] != np.arange(len(codes)))
        if not len(again):
            return None  # then no longer run repeats either
        if size in shares:
            steps = np.zeros(len(words) + 1, dtype=np.int64)
            np.add.at(steps, again, 1)
            np.add.at(steps, again + size, -1)
            if lengths[np.cumsum(steps[:-1]) > 0].sum() > shares[size] * lengths.sum():
                return f"duplicate {size}-grams"
    return None


def _runs(words: list[str]) -> Iterator[NDArray[np.int64]]:
    """For n = 1, 2, …: [words − n + 1] a number for each run of n words, the same for the same words, from 0 without gaps."""
    import numpy as np

    numbers: dict[str, int] = {}
    single = np.array([numbers.setdefault(word, len(numbers)) for word in words], dtype=np.int64)
    codes = single
    size = 1
    while True:
        yield codes
        size += 1
        if len(words) < size:
            return
        # exact, not a hash: the number of the shorter run and the number of its next word
        _, codes = np.unique(codes[:-1] * len(numbers) + single[size - 1 :], return_inverse=True)


def _lengths(words: list[str]) -> NDArray[np.int64]:
    import numpy as np

    return np.fromiter(map(len, words), dtype=np.int64, count=len(words))
