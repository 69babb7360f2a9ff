"""Synonyms: words of the same meaning."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from pipelines.judging.attacks.characters import CHINESE
from pipelines.judging.attacks.letters import like
from pipelines.judging.attacks.lexicon import LexiconAttack, read_lexicon

if TYPE_CHECKING:
    from numpy.random import Generator


class Synonyms(LexiconAttack, name="synonyms"):
    """A word is replaced by a synonym from a lexicon; the longest known word at a position is taken (Ren et al. 2019).

    Of the words of the text that are in the lexicon, a share `rate` is replaced.
    """

    paper = "doi:10.18653/v1/P19-1103"

    shipped: ClassVar[Mapping[str, str]] = {"en": "synonyms_en.tsv", "zh": "synonyms_zh.tsv"}

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        path = self.file(language)
        known = read_lexicon(path)

        def exchange(match: re.Match[str]) -> str:
            drawn, word = random.random() < rate, match[0]
            others = known.get(word) or known.get(word.lower()) or ()
            return like(word, others[int(random.integers(len(others)))]) if drawn and others else word

        return _any_word(path, language).sub(exchange, text)


@cache
def _any_word(path: Path, language: str) -> re.Pattern[str]:
    """Pattern of any word of the lexicon, longest first; whole words in languages written with spaces."""
    words = sorted(read_lexicon(path), key=lambda word: (-len(word), word))
    either = "|".join(map(re.escape, words))
    return re.compile(either if language in CHINESE else rf"\b(?:{either})\b", re.IGNORECASE)
