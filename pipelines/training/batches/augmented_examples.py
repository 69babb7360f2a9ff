"""Training examples that an augmentation changes: anew in every epoch, whichever rank reads them, and whenever.

What becomes of an example is a function of the seed, the epoch and the example alone. Examples are changed and encoded
when their batch is due, so that no epoch is ever in memory or on the disk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.training.batches.examples import tensors

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from pipelines.recipe.augmentations import Augmentation
    from pipelines.task_families import Row, TaskFamily
    from pipelines.task_families.encoding import EncodedExamples

STREAM = 12
"""The number of this stream of random numbers among those of a seed."""


class AugmentedExamples:
    """The items of `items`, changed: `change(row, epoch, example)`, then encoded by `encode`.

    Of an example that is several items, an item is that of the same number in the changed example, or its last.
    """

    def __init__(
        self,
        items: EncodedExamples,
        encode: Callable[[Sequence[Row]], EncodedExamples],
        change: Callable[[Row, int, int], Row],
    ) -> None:
        self._items, self._encode, self._change = items, encode, change
        self._first = np.searchsorted(items.owners, items.owners)
        """[items] index of the first item of the same example."""

    def encoded_by(self, encode: Callable[[Sequence[Row]], EncodedExamples]) -> AugmentedExamples:
        """The same examples with the same changes, encoded by another network's `encode`."""
        return AugmentedExamples(self._items, encode, self._change)

    def ids(self, epoch: int, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Numbers of the items `chosen` [B] in an epoch, other than those of every other epoch."""
        return epoch * len(self._items) + chosen

    def batch(self, ids: NDArray[np.int64]) -> dict[str, Tensor]:
        """The batch of the items `ids` [B]: field name → torch tensor."""
        epochs, chosen = np.divmod(ids, len(self._items))
        numbers = self._items.owners[chosen].tolist()
        rows = [
            self._change(self._items.examples[number], epoch, number)
            for epoch, number in zip(epochs.tolist(), numbers, strict=True)
        ]
        encoded = self._encode(rows)
        begins = np.searchsorted(encoded.owners, np.arange(len(rows) + 1))
        return tensors(encoded, np.minimum(begins[:-1] + chosen - self._first[chosen], begins[1:] - 1))


def changes(
    augmentation: Sequence[Augmentation], family: TaskFamily, seed: int, language: str
) -> Callable[[Row, int, int], Row]:
    """What `augmentation` makes of the examples of a task: `change(row, epoch, example)`."""

    def change(row: Row, epoch: int, example: int) -> Row:
        # a text without labels, whose answer nothing reads
        missing = {name: "" for name in family.target if name not in row}
        changed: Row = {**row, **missing}
        for number, one in enumerate(augmentation):
            random = np.random.default_rng([seed, STREAM, epoch, example, number])
            if random.random() < one.share:
                changed = one.attack.example(changed, family, one.rate, random, language)
        return {name: value for name, value in changed.items() if name not in missing}

    return change
