"""Training batches of encoded examples of similar length: a pure function of (examples, seed, step)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from pipelines.task_families.encoding import EncodedExamples
    from pipelines.training.batches.augmented_examples import AugmentedExamples

BUCKET = 50
"""Number of batches whose examples are sorted by length together, as in transformers' Trainer. For the sentences of
benchmarks/fine_tuning, 28 tokens on average, padding adds 19 %; with 8 batches it adds 42 %, without sorting 144 %. The
order of batches stays random, and each epoch groups the examples anew."""


class ExampleBatches:
    """An iterable over the training batches of a stage, from any step on."""

    corruption_shards: None = None
    """None: a batch can be divided anywhere."""

    def __init__(
        self,
        encoded: EncodedExamples,
        *,
        size: int,
        steps: int,
        seed: int,
        augmented: AugmentedExamples | None = None,
    ) -> None:
        self.encoded, self.size, self.steps, self.seed = encoded, size, steps, seed
        self.augmented = augmented
        """The same items as every epoch changes them; None where none does."""
        self.start = 0
        self.steps_per_epoch = max(1, -(-len(encoded) // size))
        self._epoch: tuple[int, list[NDArray[np.int64]]] = (-1, [])

    @property
    def items(self) -> EncodedExamples | None:
        """The items that every epoch reads; None where each reads others."""
        return self.encoded if self.augmented is None else None

    @property
    def tokens_per_batch(self) -> int:
        """Average number of tokens in a batch, without padding."""
        return round(int(self.encoded.lengths.sum()) / self.steps_per_epoch)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for step in range(self.start, self.steps):
            yield self.micro_batch(step, 0, 1)

    def micro_batch(self, step: int, number: int, of: int) -> dict[str, Tensor]:
        """Part `number` of `of` of the batch of optimizer step `step`; parts differ by one example at most.

        Empty, without fields, where there are fewer examples than parts.
        """
        epoch, at = divmod(step, self.steps_per_epoch)
        batch = self._batches(epoch)[at]
        begin, end = len(batch) * number // of, len(batch) * (number + 1) // of
        return self._with_item_ids(epoch, batch[begin:end]) if end > begin else {}

    def _with_item_ids(self, epoch: int, chosen: NDArray[np.int64]) -> dict[str, Tensor]:
        import torch

        if self.augmented is None:
            return {**tensors(self.encoded, chosen), str(Field.ITEMS): torch.from_numpy(chosen)}
        ids = self.augmented.ids(epoch, chosen)
        return {**self.augmented.batch(ids), str(Field.ITEMS): torch.from_numpy(ids)}

    def continues(self, step: int) -> bool:
        """False: no example continues another."""
        return False

    def _batches(self, epoch: int) -> list[NDArray[np.int64]]:
        if self._epoch[0] != epoch:
            random = np.random.default_rng([self.seed, 4, epoch])
            order = random.permutation(len(self.encoded))
            lengths = self.encoded.lengths
            span = self.size * BUCKET
            batches: list[NDArray[np.int64]] = []
            for begin in range(0, len(order), span):
                bucket = order[begin : begin + span]
                bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
                batches += [bucket[at : at + self.size] for at in range(0, len(bucket), self.size)]
            self._epoch = (epoch, [batches[index] for index in random.permutation(len(batches))])
        return self._epoch[1]


class SortedBatches:
    """Batches of every item once, shortest first: for validation."""

    def __init__(self, encoded: EncodedExamples, size: int) -> None:
        self.encoded = encoded
        order = np.argsort(encoded.lengths, kind="stable")
        self.chosen = [order[begin : begin + size] for begin in range(0, len(order), size)]
        """Indices of the items of each batch."""

    def __len__(self) -> int:
        return len(self.chosen)

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return tensors(self.encoded, self.chosen[index])


def tensors(encoded: EncodedExamples, chosen: NDArray[np.int64]) -> dict[str, Tensor]:
    """The batch of the items `chosen`: field name → torch tensor."""
    import torch

    return {str(name): torch.from_numpy(value) for name, value in encoded.batch(chosen).items()}
