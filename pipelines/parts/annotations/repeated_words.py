"""Whether words appear in another part of their document (Sun et al. 2019, ERNIE 2.0 §4.2.1)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field as Option

from pipelines.parts.annotations import Annotation
from pipelines.parts.annotations.running_words import running_words
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

NAME = "repeated_words"


class RepeatedWords(Annotation, name=NAME):
    """2 for the tokens of a word that another segment of the document has too, 1 where none has, 0 for tokens in no
    word. Words are compared without case."""

    paper = "arXiv:1907.12412"
    makes: ClassVar[str] = NAME

    segment: int = Option(50, gt=0)
    """Number of words in a segment."""

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (Channel(NAME, size=3, edges=(0, 0)),)

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        words, word = running_words(text)
        segments: dict[str, set[int]] = {}
        for number, one in enumerate(words):
            segments.setdefault(one.lower(), set()).add(number // self.segment)
        # the last entry is that of tokens in no word, whose index is −1
        values = [2 if len(segments[one.lower()]) > 1 else 1 for one in words] + [0]
        return {NAME: np.asarray(values, dtype=np.int64)[word]}
