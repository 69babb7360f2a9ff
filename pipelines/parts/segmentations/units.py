"""Entities and phrases as the units of a text, characters elsewhere (Sun et al. 2019, ERNIE §3.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Self

from pydantic import model_validator

from pipelines.errors import DataError
from pipelines.parts.segmentations import Segmentation
from pipelines.shipped import own_or_shipped


class Units(Segmentation, name="units"):
    """A word is an entity that a tagger finds, or an entry of a lexicon; elsewhere a Chinese character, or a run of
    Latin letters and digits.

    The tagger is jieba's: a dictionary with parts of speech, and a hidden Markov model for words outside it. Entries of
    the lexicon, the longest first, from left to right, come before what the tagger finds.
    """

    paper = "arXiv:1904.09223"
    languages: ClassVar[frozenset[str] | None] = frozenset({"zh"})

    tags: tuple[str, ...] = ("nr", "ns", "nt", "nz")
    """Parts of speech, by ICTCLAS's names, that are units: by default persons, places, organisations, other names.
    Longer names begin with the shorter ones: nr holds nrt."""
    joined: tuple[str, ...] = ("nr",)
    """Those of which adjacent words are one unit: a family name and a given name."""
    lexicon: Path | None = None
    """UTF-8 file of phrases and entities, one in each line; lines that begin with `#` are comments."""
    whole_words: bool = False
    """Whether text that is no unit is cut into the tagger's words, instead of characters."""

    @model_validator(mode="after")
    def _some_units(self) -> Self:
        if not self.tags and self.lexicon is None:
            raise ValueError("without tags and without a lexicon there are no units: name either")
        if unknown := set(self.joined) - set(self.tags):
            raise ValueError(f"joined: {', '.join(sorted(unknown))} is not among tags")
        return self

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return () if self.lexicon is None else (own_or_shipped(self.lexicon),)

    def unfit(self, language: str | None) -> str | None:
        """Why the lexicon is none; None where it is one, or where there is none."""
        try:
            self._entries()
        except DataError as error:
            return str(error)
        return None

    def word_starts(self, text: str) -> Sequence[int]:
        starts = set[int]()
        for begin, end, is_unit in self._tagged(text):
            whole = is_unit or self.whole_words or text[begin:end].isascii()
            starts.update((begin,) if whole else range(begin, end))
        for begin, end in self._entry_spans(text):
            starts.difference_update(range(begin + 1, end))
            starts.update((begin, end))
        return sorted(start for start in starts if start < len(text) and not text[start].isspace())

    def _tagged(self, text: str) -> Iterator[tuple[int, int, bool]]:
        """Begin and end of each word of the tagger, and whether it is a unit; adjacent ones of `joined` are one."""
        import rjieba

        at, joining = 0, ""
        pending: tuple[int, int, bool] | None = None
        for word, tag in rjieba.tag(text, True):
            begin, at = at, at + len(word)
            kind = next((one for one in self.tags if tag.startswith(one)), "")
            if pending is not None and joining and joining == kind:
                pending = (pending[0], at, True)
                continue
            if pending is not None:
                yield pending
            pending, joining = (begin, at, bool(kind)), kind if kind in self.joined else ""
        if pending is not None:
            yield pending

    def _entry_spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Begin and end of each entry of the lexicon in `text`."""
        entries, longest = self._entries()
        at = 0
        while at < len(text) and entries:
            sizes = range(min(longest, len(text) - at), 1, -1)
            size = next((size for size in sizes if text[at : at + size] in entries), 0)
            if size:
                yield at, at + size
            at += max(size, 1)

    def _entries(self) -> tuple[frozenset[str], int]:
        """The entries of the lexicon, and the length of the longest."""
        return (frozenset(), 0) if self.lexicon is None else read_units(own_or_shipped(self.lexicon))


@lru_cache(maxsize=8)
def read_units(path: Path) -> tuple[frozenset[str], int]:
    """The entries of a lexicon, and the length of the longest. Raises DataError naming the file and the line."""
    entries = set()
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as a lexicon of units ({error}); write UTF-8") from None
    for number, line in enumerate(lines, 1):
        entry = line.strip()
        if not entry or entry.startswith("#"):
            continue
        if len(entry) < 2 or len(entry.split()) > 1:
            raise DataError(
                f"{path}, line {number}: expected a phrase or an entity of at least two characters without spaces, got "
                f"{entry[:60]!r}"
            )
        entries.add(entry)
    if not entries:
        raise DataError(f"{path}: contains no units; write a phrase or an entity in each line")
    return frozenset(entries), max(map(len, entries))
