"""Windows layout: every epoch cuts the stream at a new offset and visits the windows in a new random order."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pipelines.parts.layouts import Layout, RowSegments, StreamShape
from pipelines.parts.layouts.permuted_order import permuted_items


class Windows(Layout, name="windows"):
    """Windows of equal length across documents (Liu et al. 2019, §4.2), cut at a new random offset each epoch.

    A window is moved to the start of a document that lies less than half a window before it. The order of an epoch is
    computed element by element, so that it takes no memory however long the stream is.
    """

    paper = "arXiv:1907.11692"

    def segments(self, stream: StreamShape, seed: int, step: int) -> RowSegments:
        starts, width = stream.starts, stream.width
        per_epoch = self.steps_per_epoch(stream)
        epoch, index = divmod(step, per_epoch)
        order = permuted_items((seed, 6, epoch), per_epoch * stream.rows, index, stream.rows)
        grid = _phase(seed, epoch, width) + width * order
        document = starts[np.searchsorted(starts, grid, side="right") - 1]
        snapped = np.where(grid - document < width // 2, document, grid)
        # only in a stream of fewer than rows + 2 windows can a window reach beyond the end
        return RowSegments(np.minimum(snapped, stream.tokens - width))

    def steps_per_epoch(self, stream: StreamShape) -> int:
        # the offset takes up to one window, and moving to a document start may reach one further back
        return max(1, (stream.tokens // stream.width - 2) // stream.rows)


@lru_cache(maxsize=4)
def _phase(seed: int, epoch: int, width: int) -> int:
    return int(np.random.default_rng([seed, 3, epoch]).integers(width))
