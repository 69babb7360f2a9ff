"""Lists of similar words, from a lexicon or from vectors of words, with errors that name file and line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import DataError

_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
WRITTEN_IN_HAN = frozenset({"zh", "ja"})
"""Languages whose words are, at least in part, Han characters."""


class SimilarLists:
    """Similar words of the `words` that a source lists; `search` finds those of one of them."""

    def __init__(self, words: tuple[str, ...], search: Callable[[str], tuple[str, ...]]) -> None:
        self.words = words
        self._known = frozenset(words)
        self._search = cache(search)

    def similar(self, word: str) -> tuple[str, ...]:
        """The similar words of `word`, the most similar first; none of a word that the source does not list."""
        known = next((one for one in (word, word.lower()) if one in self._known), None)
        return self._search(known) if known is not None else ()

    def has_language(self, language: str) -> bool:
        """Whether any of the words is written as those of `language` are: with Han characters, or without."""
        return any((_HAN.search(word) is not None) == (language in WRITTEN_IN_HAN) for word in self.words)


@cache
def similar_by_lexicon(path: Path) -> SimilarLists:
    """The words of each line as similar words of each other; lines that begin with `#` are comments."""
    groups: dict[str, dict[str, None]] = {}
    for number, line in _lines(path):
        if line.startswith("#"):
            continue
        words = [word.strip() for word in line.split("\t")]
        if len(words) < 2 or not all(words) or len(set(words)) < len(words):
            raise DataError(f"{path}, line {number}: expected two or more different words, separated by tabs")
        for word in words:
            groups.setdefault(word, {}).update(dict.fromkeys(other for other in words if other != word))
    if not groups:
        raise DataError(f"{path}: contains no words; write words of a similar meaning in a line, separated by tabs")
    return SimilarLists(tuple(groups), lambda word: tuple(groups[word]))


@cache
def similar_by_vectors(path: Path, neighbours: int) -> SimilarLists:
    """The `neighbours` words of the largest cosine; a first line of two numbers, of words and elements, is left out."""
    rows: dict[str, NDArray[np.float32]] = {}
    width = 0
    for number, line in _lines(path):
        word, *values = line.rstrip().split(" ")
        if number == 1 and len(values) == 1:
            continue
        try:
            vector = np.asarray([float(value) for value in values], dtype=np.float32)
        except ValueError:
            vector = np.empty(0, dtype=np.float32)
        length = float(np.linalg.norm(vector))
        if not word or not 0 < length < np.inf or len(vector) != (width or len(vector)):
            raise DataError(f"{path}, line {number}: expected a word and {width or ''} finite numbers, not all 0")
        width = len(vector)
        rows.setdefault(word, vector / length)
    if len(rows) < 2:
        raise DataError(f"{path}: {len(rows)} words have no similar ones; write a word and its numbers in each line")
    words, matrix = tuple(rows), np.stack(list(rows.values()))
    numbers = {word: row for row, word in enumerate(words)}

    def nearest(word: str) -> tuple[str, ...]:
        cosines = matrix @ matrix[numbers[word]]
        cosines[numbers[word]] = -np.inf
        # of equal ones the first in the file
        return tuple(words[row] for row in np.argsort(-cosines, kind="stable")[: min(neighbours, len(words) - 1)])

    return SimilarLists(words, nearest)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Number and text of every line of `path` that is not blank."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as a source of similar words ({error}); write UTF-8") from None
    return ((number, line) for number, line in enumerate(lines, 1) if line.strip())
