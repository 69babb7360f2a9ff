"""The word that a character is part of, as one of a fixed number of values (Li et al. 2019; Weinberger et al. 2009)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from zlib import crc32

import numpy as np
from pydantic import Field as Option

from pipelines.parts.annotations import Annotation
from pipelines.task_families.tokenized import UNCOVERED, word_at
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

NAME = "hashed_words"


class HashedWords(Annotation, name=NAME):
    """A number for the word of each token, from a digest of the word: a vocabulary of any text, without a file.

    Words are jieba's, or those of a text that is given as words. Different words may share a number; 0 is no word.
    """

    paper = "arXiv:1905.05526"
    makes: ClassVar[str] = NAME

    size: int = Option(32_768, gt=1)
    """Number of values."""
    unknown_words: bool = True
    """Whether words outside of jieba's dictionary are found by its hidden Markov model; otherwise each of their
    characters is a word."""

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (Channel(NAME, size=self.size, edges=(0, 0)),)

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        if isinstance(text.text, str):
            import rjieba

            cut = list(rjieba.tokenize(text.text, "default", self.unknown_words))
            words = [word for word, _, _ in cut]
            word = word_at(text.spans, np.asarray([end for _, _, end in cut], dtype=np.int64))
        else:
            assert text.words is not None
            words, word = [*text.text], text.words
        # the last entry is that of tokens in no word, whose index is −1
        assert UNCOVERED == -1
        values = [0 if one.isspace() else 1 + crc32(one.encode()) % (self.size - 1) for one in words] + [0]
        return {NAME: np.asarray(values, dtype=np.int64)[word]}
