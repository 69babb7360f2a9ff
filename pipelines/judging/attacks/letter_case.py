"""Letter case: capitals where none were, or none where some were."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.letters import ALPHABETIC, change_words

if TYPE_CHECKING:
    from numpy.random import Generator


class LetterCase(Attack, name="letter_case"):
    """Words in capitals, in small letters, or with their capitals the other way round. A model without case sees nothing of it."""

    languages: ClassVar[frozenset[str] | None] = ALPHABETIC

    to: Literal["upper", "lower", "swapped"] = "upper"
    """What becomes of a word."""

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        ways = {"upper": str.upper, "lower": str.lower, "swapped": str.swapcase}
        return change_words(text, rate, random, ways[self.to])
