"""Values that the data itself brings, one for each word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from pydantic import Field as Option
from pydantic import model_validator

from pipelines.errors import DataError
from pipelines.parts.annotations import Annotation
from pipelines.task_families.tokenized import UNCOVERED
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText


class WordColumn(Annotation, name="word_column"):
    """The value of each token's word in a column of the data: its part of speech, its row of a table, its polarity.

    0 is the value of special tokens, of padding, and of words whose value is not listed: names count from 1.
    """

    channel: str = Option(pattern=r"[a-z][a-z_]*")
    """Channel to make."""
    column: str
    """Column with a value for each word: a name of `values`, or, without them, a number from 0."""
    words: str = "tokens"
    """Column with the words."""
    values: tuple[str, ...] = ()
    """Names of the values, in order."""
    largest: int | None = Option(None, ge=1)
    """Largest number of a column of numbers; larger ones count as this. Required without `values`."""

    @model_validator(mode="after")
    def _names_or_numbers(self) -> Self:
        if bool(self.values) == (self.largest is not None):
            raise ValueError("give values, for a column of names, or largest, for a column of numbers")
        return self

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (Channel(self.channel, size=1 + (self.largest or len(self.values)), edges=(0, 0)),)

    @property
    def columns(self) -> Mapping[str, str]:
        return {self.words: "list<string>", self.column: "list<string>" if self.values else "list<int64>"}

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        given, words = text.value(self.column), text.word_indices(self.words)
        if len(given) != len(text.value(self.words)):
            raise DataError(
                f"{text.where}: the column {self.column!r} holds {len(given)} values for "
                f"{len(text.value(self.words))} words"
            )
        if self.largest is not None:
            numbers = np.minimum(np.asarray(given, dtype=np.int64).reshape(-1), self.largest)
        else:
            known = {name: number for number, name in enumerate(self.values, 1)}
            numbers = np.asarray([known.get(one, 0) for one in given], dtype=np.int64)
        return {self.channel: np.where(words == UNCOVERED, 0, numbers[words])}
