"""Synonyms: other words that mean the same."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.attacks import Attack, reads
from pipelines.attacks.characters import CHINESE
from pipelines.attacks.letters import like
from pipelines.attacks.lexicon import read_lexicon

if TYPE_CHECKING:
    from numpy.random import Generator

SHIPPED = {"en": "synonyms_en.tsv", "zh": "synonyms_zh.tsv"}


class Synonyms(Attack, name="synonyms"):
    """A word becomes another of its meaning, from a lexicon; the longest word that stands there is taken (Ren et al. 2019).

    Of the words of the text that the lexicon knows, a share `rate` is exchanged, up to what a lexicon leaves to choose.
    """

    paper = "doi:10.18653/v1/P19-1103"

    lexicon: str | None = None
    """A file of word, tab, its synonyms with tabs between; None for the short English or Chinese one that comes along."""

    @property
    def reads_files(self) -> tuple[Path, ...]:
        # which of its own it reads hangs on the dataset, whose language is in every identity: both stand for it
        return (
            (Path(self.lexicon),) if self.lexicon is not None else tuple(reads(None, name) for name in SHIPPED.values())
        )

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        path = reads(self.lexicon, SHIPPED.get(language, ""))
        known = read_lexicon(path)

        def exchange(found: re.Match[str]) -> str:
            drawn, word = random.random() < rate, found[0]
            others = known.get(word) or known.get(word.lower()) or ()
            return like(word, others[int(random.integers(len(others)))]) if drawn and others else word

        return _any_word(path, language).sub(exchange, text)

    def unfit(self, family: str | None, language: str | None) -> str | None:
        if self.lexicon is None and language is not None and language not in SHIPPED:
            own = " and ".join(SHIPPED)
            return f"{self.name} comes with words of {own}, and this dataset's language is {language}; name a lexicon"
        return super().unfit(family, language)


@cache
def _any_word(path: Path, language: str) -> re.Pattern[str]:
    """Any word of the lexicon, the longest first; whole words where they are written with spaces between."""
    words = sorted(read_lexicon(path), key=lambda word: (-len(word), word))
    either = "|".join(map(re.escape, words))
    return re.compile(either if language in CHINESE else rf"\b(?:{either})\b", re.IGNORECASE)
