"""Continual mixing: the lines join one after the other, and none is left behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.parts.mixing import Mixing, allotted, shuffled

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Continual(Mixing, name="continual"):
    """Phase k trains the first k lines together; every line has equally many steps, spread evenly over its phases.

    A new line is learnt without forgetting those before it (Sun et al. 2019, ERNIE 2.0, §3.2: continual multi-task
    learning).
    """

    paper = "arXiv:1907.12412"

    def order(self, lines: Sequence[str], sizes: Sequence[int], steps: int, seed: int) -> NDArray[np.int64]:
        number = len(lines)
        random = np.random.default_rng([seed, 9])
        counts = np.zeros((number, number), dtype=np.int64)  # [phase, line]
        for line, total in enumerate(allotted(steps, np.ones(number))):
            counts[line:, line] = allotted(int(total), np.ones(number - line))
        return np.concatenate([shuffled(phase, random) for phase in counts])
