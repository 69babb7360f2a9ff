"""Layouts: how a stream of documents is cut into the rows of a batch."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from pipelines.components import Component
from pipelines.vocabulary import Ability, Field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class StreamShape:
    """The document boundaries of a token stream, and the shape of the rows to cut from it. Compared by identity."""

    starts: NDArray[np.int64]
    """int64 [D]: ascending offsets of the documents, the first 0."""
    tokens: int
    """Number of tokens of the stream, including the end-of-document token of each document."""
    width: int
    """Number of text tokens in a row that contains one text."""
    rows: int
    """Number of rows of a batch."""
    framing: int = 0
    """Number of special tokens around each text."""
    closes: bool = False
    """Whether one of the special tokens ends a text, so that its end-of-document token is omitted where every document
    has its own special tokens."""


class RowSegments(NamedTuple):
    """Segments of the stream and the rows that contain them, one after the other."""

    begins: NDArray[np.int64]
    """int64 [S]: offset of each segment in the stream."""
    lengths: NDArray[np.int64] | None = None
    """int64 [S]: number of tokens of each segment; None if every segment fills a row."""
    rows: NDArray[np.int64] | None = None
    """int64 [S]: row of each segment, ascending; None if every row has one."""

    def select_rows(self, first: int, last: int) -> RowSegments:
        """The segments of the rows from `first` up to, not including, `last`, with rows counted from `first`."""
        if self.lengths is None or self.rows is None:
            return RowSegments(self.begins[first:last])
        chosen = slice(*self.rows.searchsorted([first, last]))
        return RowSegments(self.begins[chosen], self.lengths[chosen], self.rows[chosen] - first)


class Layout(Component):
    """The segments of the stream in the rows of every optimizer step: a pure function of the stream, the seed and the
    step."""

    default_name: ClassVar[str] = "windows"
    provides: ClassVar[frozenset[Field]] = frozenset()
    """`Field.MEMORY` if row r of a step continues row r of the step before; `Field.DOCUMENT_STARTS`, with positions and
    padding, if a row contains texts that do not attend to each other."""
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset()
    """Abilities that a backbone must offer to read such rows."""

    framed: bool = True
    """Whether each row has the tokenizer's special tokens, like a single text; otherwise every token of a row is
    text."""

    @abstractmethod
    def segments(self, stream: StreamShape, seed: int, step: int) -> RowSegments:
        """The segments of optimizer step `step`; those that fill a row begin at most at `tokens` − `width`."""

    @abstractmethod
    def steps_per_epoch(self, stream: StreamShape) -> int:
        """Number of steps that read the whole stream once, at least 1."""

    def continues(self, stream: StreamShape, step: int) -> bool:
        """Whether the rows of `step` continue those of the step before."""
        return False
