"""Layouts: how a stream of documents is laid out in the rows of a batch."""

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
    """A stream, and the rows that are to be laid out over it; the same as another only where it is that other."""

    starts: NDArray[np.int64]
    """[D] where each document begins, ascending, the first at 0."""
    tokens: int
    """Length of the stream. Documents end with an end of document."""
    width: int
    """Tokens of text in a row that holds one text."""
    rows: int
    """Of a batch."""
    framing: int = 0
    """Special tokens that stand around each text."""
    closes: bool = False
    """Whether those close a text, so that its own end of document is left out where each document is framed."""


class RowSegments(NamedTuple):
    """Pieces of the stream in their rows, one behind the other."""

    begins: NDArray[np.int64]
    """[P] where each begins."""
    lengths: NDArray[np.int64] | None = None
    """[P] tokens of each; None where every piece is one row wide."""
    rows: NDArray[np.int64] | None = None
    """[P] the row of each, ascending; None where there is one a row."""

    def select_rows(self, first: int, last: int) -> RowSegments:
        """The pieces of the rows from `first` to before `last`, counted from there."""
        if self.lengths is None or self.rows is None:
            return RowSegments(self.begins[first:last])
        chosen = slice(*self.rows.searchsorted([first, last]))
        return RowSegments(self.begins[chosen], self.lengths[chosen], self.rows[chosen] - first)


class Layout(Component):
    """Which pieces of the stream stand in the rows of every step: a pure function of the stream, the seed and the step."""

    default_name: ClassVar[str] = "windows"
    provides: ClassVar[frozenset[Field]] = frozenset()
    """`Field.MEMORY` where row r of a step continues row r of the step before; `Field.DOCUMENT_STARTS`, with positions and
    padding, where a row holds texts that do not see each other."""
    needs_abilities: ClassVar[frozenset[Ability]] = frozenset()
    """Abilities that a body must offer to read such rows."""

    framed: bool = True
    """Whether each row stands between the tokenizer's own special tokens, as a single text would; else every token of a
    row is text."""

    @abstractmethod
    def segments(self, ground: StreamShape, seed: int, step: int) -> RowSegments:
        """The pieces of optimizer step `step`; those that are a row wide begin at most at `tokens` − `width`."""

    @abstractmethod
    def steps_per_epoch(self, ground: StreamShape) -> int:
        """Steps in which the whole stream is read once, at least 1."""

    def continues(self, ground: StreamShape, step: int) -> bool:
        """Whether the rows of `step` continue those of the step before."""
        return False
