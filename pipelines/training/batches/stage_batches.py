"""The batches of a stage: those of its lines, one line at each optimizer step, in the order of its mixing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from pipelines.training.batches.examples import ExampleBatches
    from pipelines.training.batches.plain_text import PlainBatches


class StageBatches:
    """The batches of all lines. Step n of the stage is the next unread batch of the line that `order` names for it.

    `order` is int64 [steps]; None for a stage with a single line, whose steps are its own.
    """

    def __init__(
        self, lines: Sequence[PlainBatches | ExampleBatches], seed: int, order: NDArray[np.int64] | None = None
    ) -> None:
        self.lines, self.seed, self._order = lines, seed, order
        self.start = 0
        """First optimizer step that is still to be taken."""
        if order is not None:
            self._line_steps = np.empty(len(order), dtype=np.int64)
            for number in range(len(lines)):
                of_line = order == number
                self._line_steps[of_line] = np.arange(int(of_line.sum()))

    def __len__(self) -> int:
        return len(self.lines[0]) if self._order is None else len(self._order)

    def line_of(self, step: int) -> int:
        """Index of the line that optimizer step `step` trains."""
        return 0 if self._order is None else int(self._order[step])

    def micro_batch(self, step: int, number: int, of: int) -> dict[str, Tensor]:
        """Part `number` of `of` of the batch of optimizer step `step`; empty where there are fewer examples."""
        return self.lines[self.line_of(step)].micro_batch(self._line_step(step), number, of)

    def continues(self, step: int) -> bool:
        """Whether the rows of `step` continue those of the line's step before."""
        return self.lines[self.line_of(step)].continues(self._line_step(step))

    @property
    def corruption_shards(self) -> int | None:
        """A number that all lines' batches can be divided into; None where they can be divided anywhere."""
        shards = [line.corruption_shards for line in self.lines if line.corruption_shards is not None]
        return math.gcd(*shards) if shards else None

    @property
    def steps_per_epoch(self) -> int:
        """Number of steps in which the data of every line is read once."""
        return sum(line.steps_per_epoch for line in self.lines)

    @property
    def tokens_per_batch(self) -> int:
        """Average number of tokens in a batch, over the steps of the stage."""
        if self._order is None:
            return self.lines[0].tokens_per_batch
        counts = np.bincount(self._order, minlength=len(self.lines))
        tokens = sum(int(count) * line.tokens_per_batch for count, line in zip(counts, self.lines, strict=True))
        return round(tokens / len(self._order))

    @property
    def largest_batch(self) -> int:
        """Tokens in the batch of the line with the largest ones: what a device must hold."""
        return max(line.tokens_per_batch for line in self.lines)

    def _line_step(self, step: int) -> int:
        return step if self._order is None else int(self._line_steps[step])
