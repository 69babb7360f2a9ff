"""Natural typos: mistakes that people make."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.attacks import Attack, reads
from pipelines.attacks.letters import ALPHABETIC, change_words, like
from pipelines.attacks.lexicon import read_lexicon

if TYPE_CHECKING:
    from numpy.random import Generator

SHIPPED = "natural_typos_en.tsv"


class NaturalTypos(Attack, name="natural_typos"):
    """A word as people misspell it, from a lexicon of their mistakes ("Nat" of Belinkov & Bisk 2018, §3.1)."""

    paper = "arXiv:1711.02173"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC

    lexicon: str | None = None
    """A file of word, tab, its misspellings with tabs between; None for the short English one that comes along."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (reads(self.lexicon, SHIPPED),)

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        known = read_lexicon(*self.reads_files)

        def misspell(word: str) -> str | None:
            others = known.get(word.lower())
            return like(word, others[int(random.integers(len(others)))]) if others else None

        return change_words(text, rate, random, misspell)

    def unfit(self, family: str | None, language: str | None) -> str | None:
        if self.lexicon is None and language not in (None, "en"):
            return f"{self.name} comes with English mistakes, and this dataset's language is {language}; name a lexicon"
        return super().unfit(family, language)
