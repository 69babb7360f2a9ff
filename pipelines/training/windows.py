"""Plain text as batches of fixed-length rows: a pure function of (documents, seed, step).

Documents are tokenised once and laid end to end with a separator between them. Each epoch cuts that stream into
windows at a new random phase, snapped to the start of a document where one is near, and visits them in a new random
order; the batch of any step is found without walking through the ones before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.corruptions import Arrays, Corruption, TokenIds
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedTokenizerFast

CHUNK = 2048
"""Documents handed to the tokenizer at once."""


class TokenStream:
    """Documents laid end to end."""

    def __init__(self, tokens: NDArray[np.unsignedinteger], starts: NDArray[np.int64]) -> None:
        self.tokens = tokens
        """[N] ids, a separator after every document."""
        self.starts = starts
        """[D] where each document begins, ascending."""

    @classmethod
    def encode(
        cls, documents: Sequence[str], tokenizer: PreTrainedTokenizerFast, most: int | None, seed: int
    ) -> TokenStream:
        """Tokenise `documents` in a random order fixed by `seed`, stopping once `most` tokens are there (None: all)."""
        order = np.random.default_rng([seed, 1]).permutation(len(documents))
        narrow = np.uint16 if len(tokenizer) <= 2**16 else np.uint32
        pieces: list[NDArray[np.unsignedinteger]] = []
        starts: list[int] = []
        total = 0
        fast = tokenizer.backend_tokenizer
        # a tokenizer remembers how it was last used, also when it comes from a checkpoint of somebody else's
        fast.no_truncation()
        fast.no_padding()
        for begin in range(0, len(order), CHUNK):
            chunk = [documents[index] for index in order[begin : begin + CHUNK]]
            for encoding in fast.encode_batch_fast(chunk, add_special_tokens=False):
                ids = [*encoding.ids, tokenizer.sep_token_id]
                starts.append(total)
                total += len(ids)
                pieces.append(np.asarray(ids, dtype=narrow))
            if most is not None and total >= most:
                break
        return cls(np.concatenate(pieces), np.asarray(starts, dtype=np.int64))


class PlainBatches:
    """An iterable over the batches of a stage, from any step on."""

    def __init__(
        self,
        stream: TokenStream,
        tokenizer: PreTrainedTokenizerFast,
        corruptions: Sequence[Corruption],
        *,
        rows: int,
        length: int,
        steps: int,
        seed: int,
    ) -> None:
        self.stream, self.corruptions = stream, corruptions
        self.length, self.steps, self.seed = length, steps, seed
        self.segments = max((corruption.segments for corruption in corruptions), default=1)
        self.windows = max(1, rows // self.segments)
        self.start = 0
        self.cls, self.sep = tokenizer.cls_token_id, tokenizer.sep_token_id
        self.ids = TokenIds(len(tokenizer), tokenizer.mask_token_id, tuple(sorted(tokenizer.all_special_ids)))
        width = self.segments * (length - 2)
        # a corpus shorter than one batch is repeated: a tiny run is a valid run
        repeats = -(-(self.windows + 2) * width // len(stream.tokens))
        self.tokens = np.tile(stream.tokens, repeats) if repeats > 1 else stream.tokens
        self.starts = np.concatenate([stream.starts + turn * len(stream.tokens) for turn in range(max(repeats, 1))])
        self.per_epoch = max(1, (len(self.tokens) // width - 2) // self.windows)
        self.width = width
        self._epoch: tuple[int, NDArray[np.int64]] = (-1, np.empty(0, dtype=np.int64))

    @property
    def tokens_per_batch(self) -> int:
        return self.windows * self.segments * self.length

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        import torch

        for step in range(self.start, self.steps):
            yield {str(name): torch.from_numpy(value) for name, value in self.batch(step).items()}

    def batch(self, step: int) -> Arrays:
        """The corrupted batch of optimizer step `step`: input_ids [windows · segments, length] and what corruptions add."""
        begins = self._begins(step // self.per_epoch)
        at = (step % self.per_epoch) * self.windows
        places = begins[at : at + self.windows, None] + np.arange(self.width)
        rows = np.empty((self.segments * self.windows, self.length), dtype=np.int64)
        rows[:, 0], rows[:, -1] = self.cls, self.sep
        rows[:, 1:-1] = self._pieces(self.tokens[places])
        documents = np.empty_like(rows)
        documents[:, 1:-1] = self._pieces(np.searchsorted(self.starts, places, side="right") - 1)
        documents[:, 0], documents[:, -1] = documents[:, 1], documents[:, -2]
        batch: Arrays = {Field.INPUT_IDS: rows, Field.ORIGINAL_IDS: rows, Field.DOCUMENTS: documents}
        random = np.random.default_rng([self.seed, 2, step])
        for corruption in self.corruptions:
            batch = corruption.apply(batch, self.ids, random)
        return batch

    def _pieces(self, windows: NDArray[np.integer]) -> NDArray[np.integer]:
        """[windows, width] as [windows · segments, length − 2]: first pieces of all windows, then second pieces, …"""
        inner = self.length - 2
        return windows.reshape(self.windows, self.segments, inner).swapaxes(0, 1).reshape(-1, inner)

    def _begins(self, epoch: int) -> NDArray[np.int64]:
        """Where each window of `epoch` begins, in the order of visiting."""
        if self._epoch[0] != epoch:
            random = np.random.default_rng([self.seed, 3, epoch])
            count = self.per_epoch * self.windows
            grid = random.integers(self.width) + self.width * np.arange(count, dtype=np.int64)
            document = self.starts[np.searchsorted(self.starts, grid, side="right") - 1]
            snapped = np.where(grid - document < self.width // 2, document, grid)
            self._epoch = (epoch, snapped[random.permutation(count)])
        return self._epoch[1]
