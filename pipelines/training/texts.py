"""Short texts, with or without labels, as batches of similar length: a pure function of (texts, seed, step)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedTokenizerFast

BUCKET = 8
"""Batches that are sorted by length together: padding shrinks and the order stays nearly random."""
MULTIPLE = 8
"""Padded lengths are multiples of this."""


class EncodedTexts:
    """Tokenised texts."""

    def __init__(
        self, texts: Sequence[str], labels: Sequence[int] | None, tokenizer: PreTrainedTokenizerFast, length: int
    ) -> None:
        fast = tokenizer.backend_tokenizer
        fast.enable_truncation(length)
        fast.no_padding()
        self.rows = [np.asarray(encoding.ids, dtype=np.int64) for encoding in fast.encode_batch_fast(list(texts))]
        fast.no_truncation()
        self.labels = None if labels is None else np.asarray(labels, dtype=np.int64)
        self.pad = tokenizer.pad_token_id

    def __len__(self) -> int:
        return len(self.rows)

    def collate(self, chosen: NDArray[np.int64]) -> dict[str, Tensor]:
        """input_ids and attention_mask [B, longest rounded up], and labels [B] where there are some."""
        import torch

        rows = [self.rows[index] for index in chosen]
        longest = -(-max(len(row) for row in rows) // MULTIPLE) * MULTIPLE
        ids = np.full((len(rows), longest), self.pad, dtype=np.int64)
        mask = np.zeros_like(ids)
        for index, row in enumerate(rows):
            ids[index, : len(row)] = row
            mask[index, : len(row)] = 1
        batch = {Field.INPUT_IDS: ids, Field.ORIGINAL_IDS: ids, Field.ATTENTION_MASK: mask}
        if self.labels is not None:
            batch[Field.LABELS] = self.labels[chosen]
        return {str(name): torch.from_numpy(value) for name, value in batch.items()}

    def in_order_of_length(self, size: int) -> list[dict[str, Tensor]]:
        """Every text once, shortest first: the batches of a validation."""
        order = np.argsort([len(row) for row in self.rows], kind="stable")
        return [self.collate(order[begin : begin + size]) for begin in range(0, len(order), size)]


class TextBatches:
    """An iterable over the training batches of a stage, from any step on."""

    def __init__(self, texts: EncodedTexts, *, size: int, steps: int, seed: int) -> None:
        self.texts, self.size, self.steps, self.seed = texts, size, steps, seed
        self.start = 0
        self.per_epoch = max(1, -(-len(texts) // size))
        self._epoch: tuple[int, list[NDArray[np.int64]]] = (-1, [])

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for step in range(self.start, self.steps):
            yield self.texts.collate(self._batches(step // self.per_epoch)[step % self.per_epoch])

    def _batches(self, epoch: int) -> list[NDArray[np.int64]]:
        if self._epoch[0] != epoch:
            random = np.random.default_rng([self.seed, 4, epoch])
            order = random.permutation(len(self.texts))
            lengths = np.asarray([len(row) for row in self.texts.rows])
            span = self.size * BUCKET
            batches: list[NDArray[np.int64]] = []
            for begin in range(0, len(order), span):
                bucket = order[begin : begin + span]
                bucket = bucket[np.argsort(lengths[bucket], kind="stable")]
                batches += [bucket[at : at + self.size] for at in range(0, len(bucket), self.size)]
            self._epoch = (epoch, [batches[index] for index in random.permutation(len(batches))])
        return self._epoch[1]
