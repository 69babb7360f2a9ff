"""Contiguous: the rows of a batch are streams that go on from batch to batch."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pipelines.parts.layouts import StreamShape, Layout, RowSegments
from pipelines.vocabulary import Field


class Contiguous(Layout, name="contiguous"):
    """Row r of a step continues row r of the step before (Mikolov et al. 2010; Merity et al. 2017; Yang et al. 2019, §2.4).

    The stream is cut into as many equal parts as a batch has rows, and each row reads its own from front to back. Every
    epoch begins at a new random phase, and with an empty memory; fewer than two windows a part are not read.
    """

    paper = "arXiv:1708.02182"
    provides: ClassVar[frozenset[Field]] = frozenset({Field.MEMORY})

    framed: bool = False
    """Whether each row stands between the tokenizer's own special tokens; they would interrupt the text every row."""

    def segments(self, ground: StreamShape, seed: int, step: int) -> RowSegments:
        tokens, width, rows = ground.tokens, ground.width, ground.rows
        epoch, place = divmod(step, self.steps_per_epoch(ground))
        phase = int(np.random.default_rng([seed, 3, epoch]).integers(width))
        # only parts of less than two windows have no room for every phase
        begins = np.arange(rows, dtype=np.int64) * (tokens // rows) + phase + place * width
        return RowSegments(np.minimum(begins, tokens - width))

    def steps_per_epoch(self, ground: StreamShape) -> int:
        return max(1, (ground.tokens // ground.rows - ground.width + 1) // ground.width)

    def continues(self, ground: StreamShape, step: int) -> bool:
        return step % self.steps_per_epoch(ground) != 0
