"""Shuffled letters: all letters of a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.letters import ALPHABETIC, change_words

if TYPE_CHECKING:
    from numpy.random import Generator


class ShuffledLetters(Attack, name="shuffled_letters"):
    """All letters of a word in random order ("Rand" of Belinkov & Bisk 2018, §3.2)."""

    paper = "arXiv:1711.02173"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        def shuffle(word: str) -> str | None:
            if len(set(word)) < 2:
                return None
            shuffled = word
            while shuffled == word:
                shuffled = "".join(random.permutation([*word]))
            return shuffled

        return change_words(text, rate, random, shuffle)
