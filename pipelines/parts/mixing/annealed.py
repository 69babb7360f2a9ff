"""Annealed mixing: proportional to the sizes at first, equal in the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from pydantic import Field

from pipelines.parts.mixing import Mixing, allotted, shuffled

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Annealed(Mixing, name="annealed"):
    """Epoch e of E trains each line in proportion to size ** α, α = 1 − (1 − `last`) · (e − 1) / (E − 1).

    So that large tasks do not displace small ones at the end of training (Stickland & Murray 2019, §3.2, where `last`
    is 0.2).
    """

    paper = "arXiv:1902.02671"

    last: float = Field(0.2, ge=0, le=1)
    """Exponent in the last epoch; it is 1 in the first."""

    def conflict(self, lines: Sequence[str], *, in_epochs: bool) -> str | None:
        if in_epochs:
            return None
        return "changes from epoch to epoch, but the budget counts tokens; give budget.epochs, or mix proportional"

    def order(self, lines: Sequence[str], sizes: Sequence[int], steps: int, seed: int) -> NDArray[np.int64]:
        weights = np.asarray(sizes, dtype=np.float64)
        epoch = min(sum(sizes), steps)
        epochs = -(-steps // epoch)
        random = np.random.default_rng([seed, 9])
        exponents = np.linspace(1.0, self.last if epochs > 1 else 1.0, epochs)
        parts = [shuffled(allotted(epoch, weights**exponent), random) for exponent in exponents]
        return np.concatenate(parts)[:steps]
