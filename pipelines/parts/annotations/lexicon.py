"""Values of words from a lexicon: polarity (Ke et al. 2020, SentiLARE §3.1), part of speech, sense."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field as Option

from pipelines.components import did_you_mean
from pipelines.errors import DataError
from pipelines.parts.annotations import Annotation
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

_WORD = re.compile(r"\w+(?:['’-]\w+)*")


class Lexicon(Annotation, name="lexicon"):
    """The value of each token's word in a file of words, 0 for words that it does not list.

    The file has one word per line, a tab, and the name of its value. Words are compared without case. In text that is
    written with spaces a word is a run of letters and digits; with `longest_match`, for text without spaces, the words
    are the longest entries of the lexicon, from left to right.
    """

    paper = "arXiv:1911.02493"

    channel: str = Option(pattern=r"[a-z][a-z_]*")
    """Channel to make."""
    file: Path
    """Tab-separated file: word, name of its value."""
    values: tuple[str, ...] = Option(min_length=1)
    """Names of the values: the first is stored as 1."""
    longest_match: bool = False
    """Whether words are matched inside text that is written without spaces."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (self.file,)

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (Channel(self.channel, size=1 + len(self.values), edges=(0, 0)),)

    def check_files(self) -> None:
        if not read_lexicon(self.file, self.values):
            raise DataError(f"{self.file}: the lexicon is empty")

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        entries = read_lexicon(self.file, self.values)
        if not isinstance(text.text, str):
            assert text.words is not None
            of_words = np.asarray([entries.get(word.lower(), 0) for word in text.text], dtype=np.int64)
            return {self.channel: of_words[text.words]}
        words = list(self._words(text.text, entries))
        if not words:
            return {self.channel: np.zeros(len(text), dtype=np.int64)}
        begins, ends, numbers = (np.asarray(one, dtype=np.int64) for one in zip(*words, strict=True))
        last = text.spans[:, 1] - 1
        word = np.minimum(np.searchsorted(ends, last, side="right"), len(ends) - 1)
        inside = (begins[word] <= last) & (last < ends[word])
        return {self.channel: np.where(inside, numbers[word], 0)}

    def _words(self, text: str, entries: Mapping[str, int]) -> Iterator[tuple[int, int, int]]:
        """Begin, end and value of each word of `text`."""
        if not self.longest_match:
            for match in _WORD.finditer(text):
                yield match.start(), match.end(), entries.get(match[0].lower(), 0)
            return
        longest, at = max(map(len, entries), default=0), 0
        while at < len(text):
            sizes = range(min(longest, len(text) - at), 0, -1)
            size = next((size for size in sizes if text[at : at + size].lower() in entries), 0)
            if size:
                yield at, at + size, entries[text[at : at + size].lower()]
            at += max(size, 1)


@lru_cache(maxsize=8)
def read_lexicon(path: Path, values: Sequence[str]) -> dict[str, int]:
    """Word in lower case → index of its value in `values`, from 1. Raises DataError naming the file and the line."""
    entries: dict[str, int] = {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as a lexicon ({error})") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        word, _, value = line.partition("\t")
        value = value.strip()
        if not word.strip() or value not in values:
            raise DataError(
                f"{path}:{number}: expected a word, a tab, and the name of its value, got {line[:60]!r}."
                f"{did_you_mean(value, values)}"
            )
        entries[word.strip().lower()] = 1 + values.index(value)
    return entries
