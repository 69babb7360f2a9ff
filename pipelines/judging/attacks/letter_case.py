"""Letter case: upper, lower or swapped case."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.letters import ALPHABETIC, change_words

if TYPE_CHECKING:
    from numpy.random import Generator


class LetterCase(Attack, name="letter_case"):
    """Words in upper case, in lower case, or with their case swapped. It has no effect on an uncased model."""

    languages: ClassVar[frozenset[str] | None] = ALPHABETIC

    to: Literal["upper", "lower", "swapped"] = "upper"
    """Case of the changed words."""

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        ways = {"upper": str.upper, "lower": str.lower, "swapped": str.swapcase}
        return change_words(text, rate, random, ways[self.to])
