"""Proportional mixing: a line is trained as often as its data is large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from pipelines.parts.mixing import Mixing, allotted, shuffled

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Proportional(Mixing, name="proportional"):
    """Every epoch is a random order of all lines, each in proportion to size ** `exponent`.

    With exponent 1 an epoch reads the data of every line once (Liu et al. 2019, MT-DNN, algorithm 1). An exponent
    between 0 and 1 moves steps from the large lines to the small ones (Lample & Conneau 2019, §3.1, with 0.5; Stickland
    & Murray 2019, §3.2); 0 gives all lines equally many.
    """

    paper = "arXiv:1901.11504"

    exponent: float = Field(1.0, ge=0, le=1)
    """Exponent of the size of a line's data."""

    def order(self, lines: Sequence[str], sizes: Sequence[int], steps: int, seed: int) -> NDArray[np.int64]:
        weights = np.asarray(sizes, dtype=np.float64) ** self.exponent
        epoch = min(sum(sizes), steps)
        random = np.random.default_rng([seed, 9])
        parts = [shuffled(allotted(epoch, weights), random) for _ in range(-(-steps // epoch))]
        return np.concatenate(parts)[:steps]
