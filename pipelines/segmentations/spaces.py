"""Spaces: words as the writing itself separates them."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from functools import cache

from pipelines.segmentations import Segmentation


class Spaces(Segmentation, name="spaces"):
    """Words stand between spaces; each punctuation mark or symbol is a word (BERT's basic tokenizer: Devlin et al. 2018)."""

    paper = "arXiv:1810.04805"

    def word_starts(self, text: str) -> Sequence[int]:
        return [found.start() for found in _words().finditer(text)]


@cache
def _words() -> re.Pattern[str]:
    """A punctuation mark or symbol, or a run of other visible characters."""
    signs = [
        character for character in map(chr, range(sys.maxunicode + 1)) if unicodedata.category(character)[0] in "PS"
    ]
    inside = "".join(map(re.escape, signs))
    return re.compile(rf"[{inside}]|[^\s{inside}]+")
