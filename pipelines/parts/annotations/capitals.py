"""Whether words are written with a capital letter (Sun et al. 2019, ERNIE 2.0 §4.2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pipelines.parts.annotations import Annotation
from pipelines.parts.annotations.running_words import running_words
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

NAME = "capitals"


class Capitals(Annotation, name=NAME):
    """1 for the tokens of a word that begins with a small letter, 2 with a capital, 0 for all other tokens.

    A tokenizer that keeps case tells the same by its tokens: label these where it does not.
    """

    paper = "arXiv:1907.12412"
    makes: ClassVar[str] = NAME

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (Channel(NAME, size=3, edges=(0, 0)),)

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        words, word = running_words(text)
        # the last entry is that of tokens in no word, whose index is −1
        values = [2 if one[:1].isupper() else 1 if one[:1].islower() else 0 for one in words] + [0]
        return {NAME: np.asarray(values, dtype=np.int64)[word]}
