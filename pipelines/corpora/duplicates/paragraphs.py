"""The paragraphs of a text: what blank lines part or, in a text that has none, lines."""

from __future__ import annotations

import re

_BLANK = re.compile(r"\n[ \t]*\n\s*")


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, in order."""
    found = _BLANK.split(text)
    return found if len(found) > 1 else text.split("\n")


def without_paragraphs(text: str, numbers: set[int]) -> str:
    """The text without some of its paragraphs, by their place."""
    found = paragraphs(text)
    mark = "\n\n" if _BLANK.search(text) else "\n"
    return mark.join(part for number, part in enumerate(found) if number not in numbers).strip()
