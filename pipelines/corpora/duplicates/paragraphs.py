"""Paragraphs of a text: separated by blank lines or, in a text without blank lines, single lines."""

from __future__ import annotations

import re

_BLANK = re.compile(r"\n[ \t]*\n\s*")


def paragraphs(text: str) -> list[str]:
    """Paragraphs of a text, in order."""
    parts = _BLANK.split(text)
    return parts if len(parts) > 1 else text.split("\n")


def without_paragraphs(text: str, indices: set[int]) -> str:
    """Text without the paragraphs at the indices `numbers`."""
    parts = paragraphs(text)
    separator = "\n\n" if _BLANK.search(text) else "\n"
    return separator.join(part for index, part in enumerate(parts) if index not in indices).strip()
