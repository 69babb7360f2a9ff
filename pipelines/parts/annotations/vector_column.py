"""Vectors that the data itself brings, one for each word: of a region of an image, of a spoken word."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic import Field as Option

from pipelines.errors import DataError
from pipelines.parts.annotations import Annotation
from pipelines.task_families.tokenized import UNCOVERED
from pipelines.vocabulary import Channel

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.task_families.tokenized import TokenizedText


class VectorColumn(Annotation, name="vector_column"):
    """The vector of each token's word in a column of the data.

    A word without one has an empty list there; it has zeros, as special tokens and padding have.
    """

    paper = "arXiv:1908.08530"
    makes = "vectors"

    channel: str = Option("vectors", pattern=r"[a-z][a-z_]*")
    """Channel to make."""
    column: str
    """Column with a vector for each word."""
    width: int = Option(ge=1)
    """Width of the vectors."""
    words: str = "tokens"
    """Column with the words."""

    @property
    def channels(self) -> tuple[Channel, ...]:
        return (Channel(self.channel, size=None, shape=(self.width,), edges=(0, 0)),)

    @property
    def columns(self) -> Mapping[str, str]:
        return {self.words: "list<string>", self.column: "list<list<double>>"}

    def annotate(self, text: TokenizedText) -> Mapping[str, NDArray[Any]]:
        given, words = text.value(self.column), text.word_indices(self.words)
        if len(given) != len(text.value(self.words)):
            raise DataError(
                f"{text.where}: the column {self.column!r} holds {len(given)} vectors for "
                f"{len(text.value(self.words))} words"
            )
        # one more, for tokens of no word
        vectors = np.zeros((len(given) + 1, self.width), dtype=np.float32)
        for number, vector in enumerate(given):
            if len(vector) not in (0, self.width):
                raise DataError(
                    f"{text.where}: the vector of word {number} in the column {self.column!r} has {len(vector)} "
                    f"numbers, and the annotation says width: {self.width}; write {len(vector)} there, and as size of "
                    "the embeddings that read it"
                )
            try:
                vectors[number] = vector or 0
            except (TypeError, ValueError):  # of an example that no file was checked for
                raise DataError(
                    f"{text.where}: the vector of word {number} in the column {self.column!r} is no list of numbers"
                ) from None
        return {self.channel: vectors[np.where(words == UNCOVERED, len(given), words)]}
