"""How words are put together to a text: spaces between those of most scripts, none between Han and kana characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_UNSPACED = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")


def has_han(text: str) -> bool:
    """Whether a Han character stands in `text`."""
    return re.search("[\u3400-\u9fff\uf900-\ufaff]", text) is not None


def joined(words: Sequence[str]) -> str:
    """`words` as one text: a space between two words unless both sides of the gap are written without."""
    text = ""
    for word in words:
        gap = text and not (_UNSPACED.match(text[-1]) and _UNSPACED.match(word[:1]))
        text += f" {word}" if gap else word
    return text


def as_written(words: Sequence[str]) -> list[str]:
    """`words` with the space that stands before each in writing: to many tokenizers it is part of the word."""
    return [
        words[0],
        *(" " * (len(joined([before, word])) - len(before) - len(word)) + word for before, word in pairwise(words)),
    ]
