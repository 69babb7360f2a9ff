"""Natural typos: misspellings that people make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

from pipelines.judging.attacks.letters import ALPHABETIC, change_words, like
from pipelines.judging.attacks.lexicon import LexiconAttack, read_lexicon

if TYPE_CHECKING:
    from numpy.random import Generator


class NaturalTypos(LexiconAttack, name="natural_typos"):
    """A word is replaced by a common misspelling, from a lexicon ("Nat" of Belinkov & Bisk 2018, §3.1)."""

    paper = "arXiv:1711.02173"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC
    shipped: ClassVar[Mapping[str, str]] = {"en": "natural_typos_en.tsv"}

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        known = read_lexicon(self.file(language))

        def misspell(word: str) -> str | None:
            others = known.get(word.lower())
            return like(word, others[int(random.integers(len(others)))]) if others else None

        return change_words(text, rate, random, misspell)
