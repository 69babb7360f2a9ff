"""Contiguous: the rows of a batch are streams that go on from batch to batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pipelines.layouts import Layout
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Contiguous(Layout, name="contiguous"):
    """Row r of a step continues row r of the step before (Mikolov et al. 2010; Merity et al. 2017; Yang et al. 2019, §2.4).

    The stream is cut into as many equal parts as a batch has rows, and each row reads its own from front to back. Every
    epoch begins at a new random phase, and with an empty memory; fewer than two windows a part are not read.
    """

    paper = "arXiv:1708.02182"
    provides: ClassVar[frozenset[Field]] = frozenset({Field.MEMORY})

    framed: bool = False
    """Whether each row stands between the tokenizer's own special tokens; they would interrupt the text every row."""

    def begins(
        self, starts: NDArray[np.int64], tokens: int, width: int, rows: int, seed: int, step: int
    ) -> NDArray[np.int64]:
        epoch, place = divmod(step, self.steps_per_epoch(tokens, width, rows))
        phase = int(np.random.default_rng([seed, 3, epoch]).integers(width))
        # only parts of less than two windows have no room for every phase
        return np.minimum(np.arange(rows, dtype=np.int64) * (tokens // rows) + phase + place * width, tokens - width)

    def steps_per_epoch(self, tokens: int, width: int, rows: int) -> int:
        return max(1, (tokens // rows - width + 1) // width)

    def continues(self, tokens: int, width: int, rows: int, step: int) -> bool:
        return step % self.steps_per_epoch(tokens, width, rows) != 0
