"""Shuffled middles: all letters of a word except the first and the last."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.letters import ALPHABETIC, change_words

if TYPE_CHECKING:
    from numpy.random import Generator


class ShuffledMiddle(Attack, name="shuffled_middle"):
    """The inner letters of a word in random order ("Mid" of Belinkov & Bisk 2018, §3.2)."""

    paper = "arXiv:1711.02173"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        def shuffle(word: str) -> str | None:
            if len(set(word[1:-1])) < 2:
                return None
            middle = word[1:-1]
            while middle == word[1:-1]:
                middle = "".join(random.permutation([*middle]))
            return word[0] + middle + word[-1]

        return change_words(text, rate, random, shuffle)
