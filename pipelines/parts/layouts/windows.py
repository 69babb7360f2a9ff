"""Windows: every epoch cuts the stream anew and visits the pieces in a new random order."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pipelines.parts.layouts import StreamShape, Layout, RowSegments
from pipelines.parts.layouts.permuted_order import permuted_items


class Windows(Layout, name="windows"):
    """Full sentences packed across documents (Liu et al. 2019, §4.2), cut at a new random phase each epoch.

    A window begins at the start of a document where one lies less than half a window before it. The order of an epoch is
    computed where it is needed, so that it takes no memory however long the stream is.
    """

    paper = "arXiv:1907.11692"

    def segments(self, ground: StreamShape, seed: int, step: int) -> RowSegments:
        starts, width = ground.starts, ground.width
        per_epoch = self.steps_per_epoch(ground)
        epoch, place = divmod(step, per_epoch)
        grid = _phase(seed, epoch, width) + width * permuted_items(
            (seed, 6, epoch), per_epoch * ground.rows, place, ground.rows
        )
        document = starts[np.searchsorted(starts, grid, side="right") - 1]
        snapped = np.where(grid - document < width // 2, document, grid)
        # only a stream of fewer than rows + 2 windows reaches its end
        return RowSegments(np.minimum(snapped, ground.tokens - width))

    def steps_per_epoch(self, ground: StreamShape) -> int:
        # a phase takes one window, and snapping may look one further back
        return max(1, (ground.tokens // ground.width - 2) // ground.rows)


@lru_cache(maxsize=4)
def _phase(seed: int, epoch: int, width: int) -> int:
    return int(np.random.default_rng([seed, 3, epoch]).integers(width))
