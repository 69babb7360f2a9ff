"""Windows: every epoch cuts the stream anew and visits the pieces in a new random order."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from pipelines.parts.layouts import Ground, Layout, Placed
from pipelines.parts.layouts.permuted_order import of_step


class Windows(Layout, name="windows"):
    """Full sentences packed across documents (Liu et al. 2019, §4.2), cut at a new random phase each epoch.

    A window begins at the start of a document where one lies less than half a window before it. The order of an epoch is
    computed where it is needed, so that it takes no memory however long the stream is.
    """

    paper = "arXiv:1907.11692"

    def placed(self, ground: Ground, seed: int, step: int) -> Placed:
        starts, width = ground.starts, ground.width
        per_epoch = self.steps_per_epoch(ground)
        epoch, place = divmod(step, per_epoch)
        grid = _phase(seed, epoch, width) + width * of_step(
            (seed, 6, epoch), per_epoch * ground.rows, place, ground.rows
        )
        document = starts[np.searchsorted(starts, grid, side="right") - 1]
        snapped = np.where(grid - document < width // 2, document, grid)
        # only a stream of fewer than rows + 2 windows reaches its end
        return Placed(np.minimum(snapped, ground.tokens - width))

    def steps_per_epoch(self, ground: Ground) -> int:
        # a phase takes one window, and snapping may look one further back
        return max(1, (ground.tokens // ground.width - 2) // ground.rows)


@lru_cache(maxsize=4)
def _phase(seed: int, epoch: int, width: int) -> int:
    return int(np.random.default_rng([seed, 3, epoch]).integers(width))
