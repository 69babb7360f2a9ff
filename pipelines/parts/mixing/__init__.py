"""Mixing: which line of a stage each optimizer step trains.

sizes (steps that read each line once) ──▶ order ──▶ int64 [steps]: the line of every step
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from pipelines.components import Component

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Mixing(Component):
    """The order in which the lines of a stage are trained: a pure function of their sizes, the number of steps and the
    seed."""

    default_name: ClassVar[str] = "proportional"

    def conflict(self, lines: Sequence[str], *, in_epochs: bool) -> str | None:
        """Why this mixing cannot order `lines` within the budget of the stage; None if it can.

        `in_epochs`: whether the budget counts epochs, not tokens.
        """
        return None

    @abstractmethod
    def order(self, lines: Sequence[str], sizes: Sequence[int], steps: int, seed: int) -> NDArray[np.int64]:
        """int64 [steps]: index of the line that each optimizer step trains.

        `sizes` are the numbers of steps that read each of `lines` once; an epoch is their sum.
        """


def allotted(steps: int, weights: NDArray[np.float64]) -> NDArray[np.int64]:
    """int64 [lines]: `steps` divided in proportion to `weights`, rounded by largest remainders; the sum is `steps`."""
    exact = steps * weights / weights.sum()
    counts: NDArray[np.int64] = np.floor(exact).astype(np.int64)
    rest = np.argsort(counts - exact, kind="stable")[: steps - int(counts.sum())]
    counts[rest] += 1
    return counts


def shuffled(counts: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """int64 [sum of counts]: each line as often as `counts` says, in random order."""
    result: NDArray[np.int64] = random.permutation(np.repeat(np.arange(len(counts)), counts))
    return result
