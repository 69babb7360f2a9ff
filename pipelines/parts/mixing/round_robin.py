"""Round-robin mixing: the lines in turn, each until its data is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.parts.mixing import Mixing

if TYPE_CHECKING:
    from numpy.typing import NDArray


class RoundRobin(Mixing, name="round_robin"):
    """Every epoch takes a step of each line in turn; a line whose data is read is left out until the next epoch
    (Collobert & Weston 2008, §3; Luong et al. 2015)."""

    paper = "arXiv:1511.06114"

    def conflict(self, lines: Sequence[str], *, in_epochs: bool) -> str | None:
        if in_epochs:
            return None
        return "ends a line's turn with its epoch, but the budget counts tokens; give budget.epochs, or mix alternating"

    def order(self, lines: Sequence[str], sizes: Sequence[int], steps: int, seed: int) -> NDArray[np.int64]:
        turns = np.concatenate([np.arange(size) for size in sizes])
        line = np.repeat(np.arange(len(sizes)), sizes)
        epoch = line[np.lexsort((line, turns))]
        return np.resize(epoch, steps)
