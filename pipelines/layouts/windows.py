"""Windows: every epoch cuts the stream anew and visits the pieces in a new random order."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from pipelines.layouts import Layout

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Windows(Layout, name="windows"):
    """Full sentences packed across documents (Liu et al. 2019, §4.2), cut at a new random phase each epoch.

    A window begins at the start of a document where one lies less than half a window before it.
    """

    paper = "arXiv:1907.11692"

    def begins(
        self, starts: NDArray[np.int64], tokens: int, width: int, rows: int, seed: int, step: int
    ) -> NDArray[np.int64]:
        per_epoch = self.steps_per_epoch(tokens, width, rows)
        epoch, place = divmod(step, per_epoch)
        phase, order = _epoch(seed, epoch, width, per_epoch * rows)
        grid = phase + width * order[place * rows : (place + 1) * rows]
        document = starts[np.searchsorted(starts, grid, side="right") - 1]
        snapped = np.where(grid - document < width // 2, document, grid)
        # only a stream of fewer than rows + 2 windows reaches its end
        return np.minimum(snapped, tokens - width)

    def steps_per_epoch(self, tokens: int, width: int, rows: int) -> int:
        # a phase takes one window, and snapping may look one further back
        return max(1, (tokens // width - 2) // rows)


@lru_cache(maxsize=4)
def _epoch(seed: int, epoch: int, width: int, count: int) -> tuple[int, NDArray[np.int64]]:
    """The phase of an epoch, and the order in which its `count` windows are visited."""
    random = np.random.default_rng([seed, 3, epoch])
    return int(random.integers(width)), random.permutation(count)
