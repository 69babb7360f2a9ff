"""Layouts: how a stream of documents is laid out in the rows of a batch."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from pipelines.components import Component
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Layout(Component):
    """Where the windows of every step begin: a pure function of the stream, the seed and the step."""

    usual: ClassVar[str] = "windows"
    provides: ClassVar[frozenset[Field]] = frozenset()
    """`Field.MEMORY` where row r of a step continues row r of the step before."""

    framed: bool = True
    """Whether each row stands between the tokenizer's own special tokens, as a single text would; else every token of a
    row is text."""

    @abstractmethod
    def begins(
        self, starts: NDArray[np.int64], tokens: int, width: int, rows: int, seed: int, step: int
    ) -> NDArray[np.int64]:
        """int64 [rows]: the place in the stream where each row of optimizer step `step` begins, at most `tokens` − `width`.

        `starts` [D] is where each document begins, ascending; `tokens` the length of the stream; `width` the tokens of a
        row.
        """

    @abstractmethod
    def steps_per_epoch(self, tokens: int, width: int, rows: int) -> int:
        """Steps in which the whole stream is read once, at least 1."""

    def continues(self, tokens: int, width: int, rows: int, step: int) -> bool:
        """Whether the rows of `step` continue those of the step before."""
        return False
