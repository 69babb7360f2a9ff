"""unicode: Unicode normalisation."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from typing import Literal

from pipelines.corpora.cleaning import Repair

_DECOMPOSED_LETTERS = frozenset("\u0e33\u0eb3" + "".join(map(chr, range(0x3131, 0x318F))))
"""NFKC splits the vowel AM of Thai and Lao, and turns the Korean compatibility letters of ㅋㅋ into half syllables."""
_OWN_PUNCTUATION = frozenset({"zh", "ja"})
_LAST = 0x30000
"""No character from this code point on has a compatibility form."""
_ASTRAL = "\U00010780-\U000107bf\U0001d400-\U0001d7ff\U0001e030-\U0001eeff\U0001f100-\U0001f2ff\U0001fbf0-\U0001fbff"
"""Ranges that cover those beyond the basic plane. Exact ranges would make the regular expression many times slower."""
_ASCII = str.maketrans("。、「」『』“”„‟‘’‚‛【】〔〕—–―‐", '.,""""""""' + "''''" + "[][]" + "----")


class UnicodeForm(Repair, name="unicode"):
    """Normalise to NFKC, except where it changes meaning: 2², ½ and ① are kept, and ，in Chinese.

    Unicode Standard Annex 15 defines the forms; which compatibility characters are kept is our choice.
    """

    form: Literal["nfkc", "nfc"] = "nfkc"
    """`nfkc` also folds compatibility characters (ﬁ → fi, Ａ → A), `nfc` only composes."""
    keep: tuple[
        Literal["super", "sub", "fraction", "circle", "square", "font", "compat", "noBreak", "spacing", "letter"], ...
    ] = ("super", "sub", "fraction", "circle", "spacing", "letter")
    """Compatibility characters to keep, by their tag in the Unicode character database; `spacing`: stand-alone accents
    such as ´; `letter`: Thai, Lao and Korean letters that NFKC decomposes."""
    punctuation: Literal["keep", "fold", "ascii"] | None = None
    """Compatibility punctuation and full-width signs (，！（）…): `keep` them, `fold` them as NFKC does, or write
    `ascii`, which also replaces 。、“”【】—; by default `keep` for Chinese and Japanese, `fold` for all others."""

    def make_repair(self, language: str) -> Callable[[str], str]:
        """A function that repairs texts of a language."""
        punctuation = self.punctuation or ("keep" if language in _OWN_PUNCTUATION else "fold")
        table = _folds(self.keep, punctuation == "keep") if self.form == "nfkc" else {}
        folded = re.compile(f"[{_ranges(table)}{_ASTRAL}]") if table else None

        def repair(text: str) -> str:
            if text.isascii():
                return text
            if folded is not None and folded.search(text):
                text = folded.sub(lambda match: table.get(match[0], match[0]), text)
            text = unicodedata.normalize("NFC", text)
            return text.translate(_ASCII) if punctuation == "ascii" else text

        return repair


@cache
def _folds(keep: tuple[str, ...], keep_punctuation: bool) -> dict[str, str]:
    """Character → replacement.

    Replacing each character by its own NFKC and composing the text yields NFKC, since NFD(NFKC(c)) = NFKD(c).
    """
    kept_tags = set(keep)
    table = {}
    for code in range(128, _LAST):
        character = chr(code)
        folded = unicodedata.normalize("NFKC", character)
        if folded == unicodedata.normalize("NFC", character):
            continue
        tags = {tag for part in (character, *unicodedata.normalize("NFD", character)) for tag in _tag(part)}
        if len(folded) > 1 and folded[0] == " ":
            tags.add("spacing")
        if character in _DECOMPOSED_LETTERS:
            tags.add("letter")
        kind = unicodedata.category(character)[0]
        mark = kind == "P" or (kind == "S" and "wide" in tags)
        if not tags & kept_tags and not (mark and keep_punctuation):
            table[character] = folded
    return table


def _tag(character: str) -> Iterator[str]:
    decomposition = unicodedata.decomposition(character)
    if decomposition.startswith("<"):
        yield decomposition[1 : decomposition.index(">")]


def _ranges(characters: dict[str, str]) -> str:
    """Ranges of a regular expression's character class, for the characters in the basic plane."""
    ranges: list[list[int]] = []
    for code in sorted(code for code in map(ord, characters) if code <= 0xFFFF):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    return "".join(f"\\u{first:04x}-\\u{last:04x}" for first, last in ranges)
