"""Words separated by spaces and punctuation."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from pipelines.parts.segmentations import Segmentation

SPACE, SIGN, LETTER = range(3)
"""Character classes: separates words, is a word by itself, or is part of a word."""


class Spaces(Segmentation, name="spaces"):
    """Words are separated by spaces; each punctuation mark or symbol is a word (BERT's basic tokenizer: Devlin et al.
    2018)."""

    paper = "arXiv:1810.04805"

    def word_starts(self, text: str) -> Sequence[int]:
        kinds = _kinds()[np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)]
        begins = kinds != SPACE
        # a letter after a letter continues its word
        begins[1:] &= (kinds[1:] != LETTER) | (kinds[:-1] != LETTER)
        starts: list[int] = np.flatnonzero(begins).tolist()
        return starts


@cache
def _kinds() -> NDArray[np.uint8]:
    """uint8 [code points]: class of each character."""
    kinds = np.full(sys.maxunicode + 1, LETTER, dtype=np.uint8)
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if character.isspace():
            kinds[code] = SPACE
        elif unicodedata.category(character)[0] in "PS":
            kinds[code] = SIGN
    return kinds
