"""Lexicons: tab-separated lines of a word and its alternatives."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import ClassVar

from pipelines.errors import DataError
from pipelines.judging.attacks import Attack


class LexiconAttack(Attack):
    """An attack that replaces words by alternatives from a file: the user's, or a short bundled one."""

    shipped: ClassVar[Mapping[str, str]]
    """Language → the file name of its bundled lexicon."""

    lexicon: str | None = None
    """A file of tab-separated lines of a word and its alternatives; None for the short bundled one."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        # the bundled file depends on the dataset's language, which is in every identity; listing all of them is safe
        return tuple(map(self.file, self.shipped)) if self.lexicon is None else (Path(self.lexicon),)

    def file(self, language: str) -> Path:
        """The lexicon of `language`."""
        if self.lexicon is not None:
            return Path(self.lexicon)
        return Path(__file__).parent / "lexicons" / self.shipped[language]

    def unfit(self, family: str | None, language: str | None) -> str | None:
        if self.lexicon is None and language is not None and language not in self.shipped:
            own = " and ".join(self.shipped)
            return f"{self.name} has lexicons for {own}, and this dataset's language is {language}; name a lexicon"
        return super().unfit(family, language)


@cache
def read_lexicon(path: Path) -> dict[str, tuple[str, ...]]:
    """Word → its alternatives, in file order; lines that begin with `#` are comments.

    Raises DataError with the file and, for a malformed line, its number.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(
            f"{path}: cannot be read as a lexicon ({error}); write word, tab, alternative in UTF-8"
        ) from None
    lexicon: dict[str, tuple[str, ...]] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        word, *others = (field.strip() for field in line.split("\t"))
        if not word or not others or not all(others) or word in others:
            raise DataError(f"{path}, line {number}: expected a word and other words for it, separated by tabs")
        lexicon[word] = (*lexicon.get(word, ()), *others)
    if not lexicon:
        raise DataError(f"{path}: contains no word; write word, tab, alternative on a line")
    return lexicon
