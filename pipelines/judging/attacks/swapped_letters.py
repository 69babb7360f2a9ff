"""Swapped letters: two adjacent letters inside a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.letters import ALPHABETIC, change_words

if TYPE_CHECKING:
    from numpy.random import Generator


class SwappedLetters(Attack, name="swapped_letters"):
    """Two adjacent inner letters of a word are swapped, never the first or the last ("Swap" of Belinkov & Bisk 2018,
    §3.2)."""

    paper = "arXiv:1711.02173"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        def swap(word: str) -> str | None:
            positions = [position for position in range(1, len(word) - 2) if word[position] != word[position + 1]]
            if not positions:
                return None
            position = positions[int(random.integers(len(positions)))]
            return word[:position] + word[position + 1] + word[position] + word[position + 2 :]

        return change_words(text, rate, random, swap)
