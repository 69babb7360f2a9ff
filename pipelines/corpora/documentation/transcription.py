"""A second language that every installation has: English in Georgian letters.

    Return the sum of the array.   ─▶   სეუფსო უთე ტფნ პვ უთე ასსაშ.

Every Latin letter is replaced with one Georgian letter, small and capital alike. A text and its transcription share no
word and no token, but have one grammar and one order of words: the Fake-English of K et al. 2020 (arXiv:1912.07840),
who shift code points. It is an exercise with exact word-for-word translations, not a language that anybody speaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

SHORTEST, LONGEST = 40, 240
"""Characters of a paragraph that is translated."""
_WORD = re.compile(r"\w+|[^\w\s]")
_LATIN = "abcdefghijklmnopqrstuvwxyz"
_GEORGIAN = "".join(map(chr, range(0x10D0, 0x10D0 + len(_LATIN))))
_LETTERS = str.maketrans(_LATIN + _LATIN.upper(), 2 * _GEORGIAN)


def transcribed(text: str) -> str:
    """`text` in Georgian letters; all other characters stay."""
    return text.translate(_LETTERS)


def translations(text: str) -> Iterator[tuple[str, str]]:
    """The short paragraphs of a text, each on one line and without examples of code, and their transcriptions."""
    for block in text.split("\n\n"):
        line = " ".join(block.split())
        if SHORTEST <= len(line) <= LONGEST and ">>>" not in line:
            yield line, transcribed(line)


def aligned_translations(text: str) -> Iterator[tuple[str, str, str]]:
    """The longest of these paragraphs with spaces around every symbol, its transcription, and which words of both are
    the same: `0-0 1-1 …`, as aligners write it."""
    lines = [line for line, _ in translations(text)]
    for line in sorted(lines, key=len)[-1:]:
        words = _WORD.findall(line)
        spaced = " ".join(words)
        yield spaced, transcribed(spaced), " ".join(f"{number}-{number}" for number in range(len(words)))
