"""Contiguous layout: each row of a batch continues the same row of the batch before."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from pipelines.parts.layouts import Layout, RowSegments, StreamShape
from pipelines.vocabulary import Field


class Contiguous(Layout, name="contiguous"):
    """Row r of a step continues row r of the step before (Merity et al. 2017; Yang et al. 2019, §2.4).

    First used by Mikolov et al. 2010. The stream is divided into as many equal parts as a batch has rows, and each row
    reads its own part from front to back. Every epoch begins at a new random offset and with empty memory; fewer than
    two windows of each part are not read.
    """

    paper = "arXiv:1708.02182"
    provides: ClassVar[frozenset[Field]] = frozenset({Field.MEMORY})

    framed: bool = False
    """Whether each row has the tokenizer's special tokens; they would interrupt the text in every row."""

    def segments(self, stream: StreamShape, seed: int, step: int) -> RowSegments:
        tokens, width, rows = stream.tokens, stream.width, stream.rows
        epoch, index = divmod(step, self.steps_per_epoch(stream))
        phase = int(np.random.default_rng([seed, 3, epoch]).integers(width))
        # only parts of less than two windows have no room for every offset
        begins = np.arange(rows, dtype=np.int64) * (tokens // rows) + phase + index * width
        return RowSegments(np.minimum(begins, tokens - width))

    def steps_per_epoch(self, stream: StreamShape) -> int:
        return max(1, (stream.tokens // stream.rows - stream.width + 1) // stream.width)

    def continues(self, stream: StreamShape, step: int) -> bool:
        return step % self.steps_per_epoch(stream) != 0
