"""Changes to the letters of single words, in languages written with an alphabet and spaces."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.random import Generator

ALPHABETIC = frozenset(
    {
        "af", "ca", "cs", "da", "de", "en", "es", "et", "eu", "fi", "fr", "ga", "gl", "hr", "hu", "id",
        "is", "it", "lt", "lv", "ms", "nb", "nl", "nn", "no", "pl", "pt", "ro", "sk", "sl", "sq", "sv",
        "sw", "tr", "vi"
    }
)  # fmt: skip
"""Languages in the Latin alphabet."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def change_words(text: str, rate: float, random: Generator, change: Callable[[str], str | None]) -> str:
    """`text` with each word put through `change` with the chance `rate`; None leaves it as it is.

    Every word takes one draw, whether it can change or not, so that what happens to one does not hang on the others' kind.
    """

    def one(found: re.Match[str]) -> str:
        drawn = random.random() < rate
        return (change(found[0]) or found[0]) if drawn else found[0]

    return _WORD.sub(one, text)


def like(word: str, other: str) -> str:
    """`other` with the capitals of `word`: none, the first, or all."""
    if len(word) > 1 and word.isupper():
        return other.upper()
    return other[:1].upper() + other[1:] if word[:1].isupper() else other
