"""A second language that every installation has: English in Georgian letters.

    Return the sum of the array.   ─▶   სეუფსო უთე ტფნ პვ უთე ასსაშ.

Every Latin letter is replaced with one Georgian letter, small and capital alike. A text and its transcription share no
word and no token, but have one grammar and one order of words: the Fake-English of K et al. 2020 (arXiv:1912.07840),
who shift code points. It is an exercise with exact word-for-word translations, not a language that anybody speaks.
"""

from __future__ import annotations

from collections.abc import Iterator

SHORTEST, LONGEST = 40, 240
"""Characters of a paragraph that is translated."""
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
