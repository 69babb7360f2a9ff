"""Code switching: words in another language (Qin et al. 2020, CoSDA-ML)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pipelines.judging.attacks.letters import ALPHABETIC, change_words
from pipelines.judging.attacks.lexicon import LexiconAttack, read_lexicon
from pipelines.shipped import own_or_shipped

if TYPE_CHECKING:
    from numpy.random import Generator


class CodeSwitch(LexiconAttack, name="code_switch"):
    """A word is replaced by one of its translations in a bilingual dictionary, in one language or several.

    The three draws of §3: which texts change is the `share` of an augmentation, which of their words its `rate`, and
    a translation is drawn uniformly among those of the word. A word without one stays as it is. A word is looked up as
    it is written, then in small letters; its translation is written as in the dictionary, since scripts differ in
    whether they have capitals.
    """

    paper = "arXiv:2006.06402"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC
    shipped: ClassVar[Mapping[str, str]] = {}

    lexicon: str = Field(min_length=1)
    """The dictionary: a file of tab-separated lines of a word and its translations, of one language or several.
    Relative to the current directory, or else to what is shipped."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        return (own_or_shipped(Path(self.lexicon)),)

    def file(self, language: str) -> Path:
        return self.reads_files[0]

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        known = read_lexicon(self.file(language))

        def translation(word: str) -> str | None:
            others = known.get(word) or known.get(word.lower()) or ()
            return others[int(random.integers(len(others)))] if others else None

        return change_words(text, rate, random, translation)
