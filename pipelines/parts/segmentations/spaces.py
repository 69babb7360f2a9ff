"""Spaces: words as the writing itself separates them."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.segmentations import Segmentation

SPACE, SIGN, LETTER = range(3)
"""What a character is to words: between them, one by itself, or part of one."""


class Spaces(Segmentation, name="spaces"):
    """Words stand between spaces; each punctuation mark or symbol is a word (BERT's basic tokenizer: Devlin et al. 2018)."""

    paper = "arXiv:1810.04805"

    def word_starts(self, text: str) -> Sequence[int]:
        kinds = _kinds()[np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)]
        begins = kinds != SPACE
        # a letter goes on with the word that the letter before it is in
        begins[1:] &= (kinds[1:] != LETTER) | (kinds[:-1] != LETTER)
        starts: list[int] = np.flatnonzero(begins).tolist()
        return starts


@cache
def _kinds() -> NDArray[np.uint8]:
    """[code points] what each character is to words."""
    kinds = np.full(sys.maxunicode + 1, LETTER, dtype=np.uint8)
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if character.isspace():
            kinds[code] = SPACE
        elif unicodedata.category(character)[0] in "PS":
            kinds[code] = SIGN
    return kinds
