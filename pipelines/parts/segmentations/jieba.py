"""jieba: word segmentation of Chinese, which is written without spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pipelines.parts.segmentations import Segmentation


class Jieba(Segmentation, name="jieba"):
    """The most likely path through a dictionary, and a hidden Markov model for words outside it.

    Cui et al. 2019 use LTP instead, whose models must be downloaded; this dictionary is in the package.
    """

    languages: ClassVar[frozenset[str] | None] = frozenset({"zh"})

    unknown_words: bool = True
    """Whether the hidden Markov model finds words outside the dictionary; otherwise each of their characters is a
    word."""

    def word_starts(self, text: str) -> Sequence[int]:
        import rjieba

        return [begin for word, begin, _ in rjieba.tokenize(text, "default", self.unknown_words) if not word.isspace()]
