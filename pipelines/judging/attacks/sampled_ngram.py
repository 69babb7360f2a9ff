"""Sampled n-grams: all that is left of a text are a few words that follow each other (Tang et al. 2019, §3.3)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.letters import ALPHABETIC

if TYPE_CHECKING:
    from numpy.random import Generator

BETWEEN_SPACES = re.compile(r"\S+")
"""A word, with the symbols that touch it."""


class SampledNgram(Attack, name="sampled_ngram"):
    """With probability `rate`, a text becomes one of its n-grams, n drawn from 1 to `longest`: all other words are
    taken out of it. A text of no more words stays as it is.

    What is left may be too little for the answer: in training, a teacher says what is right of it.
    """

    paper = "arXiv:1903.12136"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC
    families: ClassVar[frozenset[str]] = frozenset({"text_classification", "pair_classification"})

    longest: int = Field(5, ge=1, le=1000)
    """Most words of an n-gram."""

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        drawn, length, first = random.random(3)
        words = list(BETWEEN_SPACES.finditer(text))
        size = 1 + int(length * self.longest)
        if drawn >= rate or len(words) <= size:
            return text
        begin = int(first * (len(words) - size + 1))
        return text[words[begin].start() : words[begin + size - 1].end()]
