"""Join words to text: with spaces in most scripts, without between Han and kana characters."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

_UNSPACED = re.compile("[\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")


def has_han(text: str) -> bool:
    """Whether `text` contains a Han character."""
    return re.search("[\u3400-\u9fff\uf900-\ufaff]", text) is not None


def join_words(words: Sequence[str]) -> str:
    """Join `words` with spaces, except between two characters of scripts without spaces."""
    text = ""
    for word in words:
        gap = text and not (_UNSPACED.match(text[-1]) and _UNSPACED.match(word[:1]))
        text += f" {word}" if gap else word
    return text


def with_leading_spaces(words: Sequence[str]) -> list[str]:
    """`words`, each with the space that precedes it in the joined text; many tokenizers treat it as part of the
    word."""
    return [
        words[0],
        *(" " * (len(join_words([before, word])) - len(before) - len(word)) + word for before, word in pairwise(words)),
    ]
