"""Changes of single words, in languages written with an alphabet and spaces."""

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
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
"""A word: letters, with apostrophes inside."""


def change_words(text: str, rate: float, random: Generator, change: Callable[[str], str | None]) -> str:
    """`text` with `change` applied to each word with probability `rate`; a result of None leaves the word as it is.

    Every word uses one random number, whether or not it can change, so that its outcome does not depend on the other
    words.
    """

    def one(match: re.Match[str]) -> str:
        drawn = random.random() < rate
        return (change(match[0]) or match[0]) if drawn else match[0]

    return WORD.sub(one, text)


def like(word: str, other: str) -> str:
    """`other` with the capitalisation of `word`: none, the first letter, or all."""
    if len(word) > 1 and word.isupper():
        return other.upper()
    return other[:1].upper() + other[1:] if word[:1].isupper() else other
