"""jieba: the words of Chinese, which are written without spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pipelines.parts.segmentations import Segmentation


class Jieba(Segmentation, name="jieba"):
    """The likeliest path through a dictionary, and a hidden Markov model for words that are in none.

    Cui et al. 2019 find the words with LTP instead, whose models must be fetched; this dictionary is in the package.
    """

    languages: ClassVar[frozenset[str] | None] = frozenset({"zh"})

    unknown_words: bool = True
    """Whether words that are not in the dictionary are guessed; else their characters stand alone."""

    def word_starts(self, text: str) -> Sequence[int]:
        import rjieba

        return [begin for word, begin, _ in rjieba.tokenize(text, "default", self.unknown_words) if not word.isspace()]
