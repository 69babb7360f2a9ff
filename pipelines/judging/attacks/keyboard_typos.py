"""Keyboard typos: an adjacent key."""

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
"""Keyboard → its rows of letters; each row is offset by about half a key to the right of the one above."""


class KeyboardTypos(Attack, name="keyboard_typos"):
    """One letter of a word is replaced by that of an adjacent key ("Key" of Belinkov & Bisk 2018, §3.2)."""

    paper = "arXiv:1711.02173"
    languages: ClassVar[frozenset[str] | None] = ALPHABETIC

    keyboard: Literal["qwerty", "qwertz", "azerty"] = "qwerty"
    """Keyboard layout."""

    def change(self, text: str, rate: float, random: Generator, language: str) -> str:
        near = neighbours(self.keyboard)

        def typo(word: str) -> str | None:
            positions = [position for position, letter in enumerate(word) if letter.lower() in near]
            if not positions:
                return None
            position = positions[int(random.integers(len(positions)))]
            keys = near[word[position].lower()]
            key = keys[int(random.integers(len(keys)))]
            return word[:position] + (key.upper() if word[position].isupper() else key) + word[position + 1 :]

        return change_words(text, rate, random, typo)


def neighbours(keyboard: str) -> dict[str, str]:
    """Letter → the letters of adjacent keys."""
    rows = ROWS[keyboard]
    positions = {
        letter: (down, across + 0.5 * down) for down, row in enumerate(rows) for across, letter in enumerate(row)
    }
    return {
        letter: "".join(
            other
            for other, (y, x) in positions.items()
            if other != letter and abs(y - down) <= 1 and abs(x - across) <= 1
        )
        for letter, (down, across) in positions.items()
    }
