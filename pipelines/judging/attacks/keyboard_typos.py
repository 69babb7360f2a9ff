"""Keyboard typos: a neighbouring key."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from pipelines.judging.attacks import Attack
from pipelines.judging.attacks.letters import ALPHABETIC, change_words

if TYPE_CHECKING:
    from numpy.random import Generator

ROWS = {
    "qwerty": ("qwertyuiop", "asdfghjkl", "zxcvbnm"),
    "qwertz": ("qwertzuiop", "asdfghjkl", "yxcvbnm"),
    "azerty": ("azertyuiop", "qsdfghjklm", "wxcvbn"),
}
"""Keyboard → its rows of letters; a row stands about half a key to the right of the one above."""


class KeyboardTypos(Attack, name="keyboard_typos"):
    """One letter of a word becomes that of a neighbouring key ("Key" of Belinkov & Bisk 2018, §3.2)."""

    paper = "arXiv:1711.02173"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC

    keyboard: Literal["qwerty", "qwertz", "azerty"] = "qwerty"
    """Where the keys stand."""

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        near = neighbours(self.keyboard)

        def typo(word: str) -> str | None:
            places = [place for place, letter in enumerate(word) if letter.lower() in near]
            if not places:
                return None
            place = places[int(random.integers(len(places)))]
            keys = near[word[place].lower()]
            key = keys[int(random.integers(len(keys)))]
            return word[:place] + (key.upper() if word[place].isupper() else key) + word[place + 1 :]

        return change_words(text, rate, random, typo)


def neighbours(keyboard: str) -> dict[str, str]:
    """Letter → the letters of the keys that touch its own."""
    rows = ROWS[keyboard]
    places = {letter: (down, across + 0.5 * down) for down, row in enumerate(rows) for across, letter in enumerate(row)}
    return {
        letter: "".join(
            other for other, (y, x) in places.items() if other != letter and abs(y - down) <= 1 and abs(x - across) <= 1
        )
        for letter, (down, across) in places.items()
    }
