"""Lexicons: a word a line, then what may stand for it, with tabs between."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar

from pipelines.errors import DataError
from pipelines.judging.attacks import Attack


class LexiconAttack(Attack):
    """An attack that looks up in a file what may stand for a word: the user's, or a short one that comes along."""

    shipped: ClassVar[Mapping[str, str]]
    """Language → the name of the lexicon that comes along."""

    lexicon: str | None = None
    """A file of word, tab, what may stand for it with tabs between; None for the short one that comes along."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        # which of its own it reads hangs on the dataset, whose language is in every identity: all stand for it
        return tuple(map(self.file, self.shipped)) if self.lexicon is None else (Path(self.lexicon),)

    def file(self, language: str) -> Path:
        """Where words of `language` are looked up."""
        if self.lexicon is not None:
            return Path(self.lexicon)
        return Path(__file__).parent / "lexicons" / self.shipped[language]

    def unfit(self, family: str | None, language: str | None) -> str | None:
        if self.lexicon is None and language is not None and language not in self.shipped:
            own = " and ".join(self.shipped)
            return f"{self.name} comes with words of {own}, and this dataset's language is {language}; name a lexicon"
        return super().unfit(family, language)


@cache
def read_lexicon(path: Path) -> dict[str, tuple[str, ...]]:
    """Word → its alternatives, in the order of the file; lines that begin with `#` are remarks.

    Raises DataError naming the file, and the line that is not of this form.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: cannot be read as a lexicon ({error}); write word, tab, alternative in UTF-8"
        ) from None
    found: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, *others = (field.strip() for field in line.split("\t"))
        if not word or not others or not all(others) or word in others:
            raise DataError(f"{path}, line {number}: expected a word and other words for it, with tabs between")
        found[word] = (*found.get(word, ()), *others)
    if not found:
        raise DataError(f"{path}: holds no word; write word, tab, alternative on a line")
    return found
