"""Texts without some of their words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from pipelines.parts.segmentations import UNSPACED

_WORD = re.compile(r"\S+\s*")
_CHARACTER = re.compile(r"\S\s*")
Spans = Sequence[tuple[int, int]]
"""Begin and end of each word in its text, the spaces after it included."""


def word_spans(text: str, language: str) -> list[tuple[int, int]]:
    """The words of `text`, each with the spaces after it; the characters of a script without spaces."""
    pattern = _CHARACTER if language in UNSPACED else _WORD
    return [match.span() for match in pattern.finditer(text)]


def without_words(text: str, spans: Spans, removed: Iterable[int]) -> str:
    """`text` without the words whose indices in `spans` are `removed`."""
    gone = set(removed)
    kept = "".join(text[begin:end] for index, (begin, end) in enumerate(spans) if index not in gone)
    return text[: spans[0][0]] + kept if spans else text


def words_of_tokens(offsets: Spans, spans: Spans) -> list[int]:
    """The word of each token with the characters `offsets`: that of its last character; −1 for a token without
    characters, as special tokens are, or before the first word."""
    result, ends = [], [end for _, end in spans]
    for begin, end in offsets:
        word = next((index for index, behind in enumerate(ends) if end - 1 < behind), -1) if end > begin else -1
        result.append(word if word >= 0 and end - 1 >= spans[word][0] else -1)
    return result
