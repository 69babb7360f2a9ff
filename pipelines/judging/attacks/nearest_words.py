"""Nearest words: those whose vectors are most similar."""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from pydantic import Field

from pipelines.errors import DataError
from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.letters import ALPHABETIC, change_words, like

if TYPE_CHECKING:
    from numpy.random import Generator
    from numpy.typing import NDArray


class NearestWords(Attack, name="nearest_words"):
    """A word is replaced by one of those whose vectors have the largest cosine with its own (Wang & Yang 2015, §4.2).

    The vectors are a text file, a word and its numbers on each line, as word2vec and GloVe write them; a first line of
    two numbers, of words and of elements, is left out. Words without a vector stay as they are. Similar words are not
    always of the same meaning: `rate` should be small where a single word decides the answer.
    """

    paper = "doi:10.18653/v1/D15-1306"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC

    vectors: str
    """Text file of the vectors."""
    neighbours: int = Field(5, ge=1, le=1000)
    """Number of most similar words, of which one is drawn."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (Path(self.vectors),)

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        known = read_vectors(Path(self.vectors))

        def replaced(word: str) -> str | None:
            nearest = known.nearest(word.lower(), self.neighbours)
            return like(word, nearest[int(random.integers(len(nearest)))]) if nearest else None

        return change_words(text, rate, random, replaced)


class WordVectors:
    """Vectors of words: `vectors` float32 [words, elements], of length 1."""

    def __init__(self, words: list[str], vectors: NDArray[np.float32]) -> None:
        self.words, self.vectors = words, vectors
        self._nearest: dict[tuple[str, int], tuple[str, ...]] = {}

    @cached_property
    def index(self) -> dict[str, int]:
        """Word → its row."""
        return {word: row for row, word in enumerate(self.words)}

    def nearest(self, word: str, count: int) -> tuple[str, ...]:
        """The `count` most similar other words, the nearest first; none for a word without a vector."""
        key = (word, count)
        if key not in self._nearest and word in self.index:
            cosines = self.vectors @ self.vectors[self.index[word]]
            cosines[self.index[word]] = -np.inf
            count = min(count, len(self.words) - 1)
            best = np.argpartition(-cosines, count - 1)[:count] if count else np.empty(0, np.int64)
            # of equal ones the first in the file, on every machine
            self._nearest[key] = tuple(self.words[row] for row in sorted(best, key=lambda row: (-cosines[row], row)))
        return self._nearest.get(key, ())


@cache
def read_vectors(path: Path) -> WordVectors:
    """The vectors in a text file. Raises DataError with the file and, for a malformed line, its number."""
    words: dict[str, None] = {}
    rows: list[NDArray[np.float32]] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: cannot be read as word vectors ({error}); write a word and numbers in UTF-8"
        ) from None
    for number, line in enumerate(lines, 1):
        word, *values = line.split(" ")
        if number == 1 and len(values) == 1:
            continue
        try:
            vector = np.asarray([float(value) for value in values if value], dtype=np.float32)
        except ValueError:
            vector = np.empty(0, dtype=np.float32)
        length = float(np.linalg.norm(vector))
        if not word or not 0 < length < np.inf or (rows and len(vector) != len(rows[0])):
            expected = f"{len(rows[0])} finite numbers" if rows else "finite numbers"
            raise DataError(f"{path}, line {number}: expected a word and {expected}, not all 0, separated by spaces")
        if word not in words:
            words[word] = None
            rows.append(vector / length)
    if len(rows) < 2:
        raise DataError(
            f"{path}: {len(rows)} words have no others near them; write a word and its numbers on each line"
        )
    return WordVectors(list(words), np.stack(rows))
