"""Swapped letters: two neighbours inside a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.letters import ALPHABETIC, change_words

if TYPE_CHECKING:
    from numpy.random import Generator


class SwappedLetters(Attack, name="swapped_letters"):
    """Two neighbouring letters of a word change places, never the first or the last ("Swap" of Belinkov & Bisk 2018, §3.2)."""

    paper = "arXiv:1711.02173"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        def swap(word: str) -> str | None:
            places = [place for place in range(1, len(word) - 2) if word[place] != word[place + 1]]
            if not places:
                return None
            place = places[int(random.integers(len(places)))]
            return word[:place] + word[place + 1] + word[place] + word[place + 2 :]

        return change_words(text, rate, random, swap)
