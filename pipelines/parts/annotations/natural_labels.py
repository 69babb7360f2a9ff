"""Labels that a text already carries: links, marks, ratings, headings (Go et al. 2009; Felbo et al. 2017,
arXiv:1708.00524)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pydantic import Field as Option
from pydantic import field_validator

from pipelines.parts.annotations import Annotation
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText

NAME = "natural_labels"


class NaturalLabels(Annotation, name=NAME):
    """The label that a mark in the text stands for, from 1, for the tokens of the mark; 0 for all other tokens.

    A mark is a match of `pattern`, or of its group, that is one of `labels`: a smiley, the stars of a review, the name
    in a link. The corruption `natural_labels` makes it the class of the row, and hides it.
    """

    paper = "arXiv:1708.00524"
    makes: ClassVar[str] = NAME

    pattern: str
    """Regular expression, with at most one group; ^ and $ match at lines."""
    labels: tuple[str, ...] = Option(min_length=2)
    """What the match, or its group, can be, compared without case: the first is stored as 1."""

    @field_validator("pattern")
    @classmethod
    def _readable(cls, pattern: str) -> str:
        try:
            groups = re.compile(pattern, re.MULTILINE).groups
        except re.error as error:
            raise ValueError(f"not a regular expression: {error}") from None
        if groups > 1:
            raise ValueError(f"one group says where the mark is, got {groups}; write the others as (?:…)")
        return pattern

    @field_validator("labels")
    @classmethod
    def _different(cls, labels: tuple[str, ...]) -> tuple[str, ...]:
        known = [label.lower() for label in labels]
        if twice := next((label for label in known if known.count(label) > 1), None):
            raise ValueError(f"the label {twice!r} is given twice")
        return labels

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (Channel(NAME, size=1 + len(self.labels), edges=(0, 0)),)

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        if not isinstance(text.text, str):
            assert text.words is not None
            of_words = [next((value for _, _, value in self._marks(word)), 0) for word in text.text]
            return {NAME: np.asarray(of_words, dtype=np.int64)[text.words]}
        values = np.zeros(len(text), dtype=np.int64)
        for begin, end, value in self._marks(text.text):
            # every token that shares a character with the mark, which could give it away
            values[(text.spans[:, 0] < end) & (text.spans[:, 1] > begin)] = value
        return {NAME: values}

    def _marks(self, text: str) -> Iterator[tuple[int, int, int]]:
        """Begin, end and value of each mark in `text`."""
        pattern, values = _compiled(self.pattern, self.labels)
        for match in pattern.finditer(text):
            begin, end = match.span(pattern.groups)
            value = values.get(text[begin:end].lower()) if begin < end else None
            if value is not None:
                yield begin, end, value


@lru_cache(maxsize=8)
def _compiled(pattern: str, labels: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, int]]:
    """The pattern, and the value of each label in small letters."""
    return re.compile(pattern, re.MULTILINE), {label.lower(): number for number, label in enumerate(labels, 1)}
