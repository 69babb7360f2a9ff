"""Plain text as batches of fixed-length rows: a pure function of (stream, seed, step).

A layout says where the rows of each step begin, so that the batch of any step is found without walking through the ones
before it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.errors import RecipeError
from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.layouts import Ground
from pipelines.training.batches.corruption_shards import joined, parted
from pipelines.training.batches.packed_rows import packed_rows
from pipelines.training.batches.token_shards import end_of_document
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedTokenizerFast

    from pipelines.parts.layouts import Layout, Placed
    from pipelines.training.batches.token_stream import TokenStream

PROBE = "a"
"""A text whose encoding shows what a tokenizer puts before and after one."""


def frame(tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """The special tokens that a tokenizer puts before a text, and after it."""
    fast = tokenizer.backend_tokenizer
    fast.no_truncation()
    fast.no_padding()
    bare = len(fast.encode(PROBE, add_special_tokens=False).ids)
    framed = fast.encode(PROBE)
    before = framed.special_tokens_mask.index(0)
    return framed.ids[:before], framed.ids[before + bare :]


def token_ids(tokenizer: PreTrainedTokenizerFast, counts: NDArray[np.int64]) -> TokenIds:
    """What corruptions must know of a tokenizer, and of a text with each token so often."""
    sentinels: list[int] = []
    while (sentinel := f"<extra_id_{len(sentinels)}>") in tokenizer.get_added_vocab():
        sentinels.append(tokenizer.get_added_vocab()[sentinel])
    mask, pad = tokenizer.mask_token_id, tokenizer.pad_token_id
    return TokenIds(
        size=len(tokenizer),
        mask=-1 if mask is None else mask,
        special=tuple(sorted({*tokenizer.all_special_ids, *sentinels})),
        pad=0 if pad is None else pad,
        end=end_of_document(tokenizer),
        sentinels=tuple(sentinels),
        counts=counts,
    )


class PlainBatches:
    """The batches of a stage: an iterable over the steps from `start` on, and each step's batch by itself.

    Of several ranks each has its share of every batch's windows, in the order of the ranks: together they read what one
    rank alone would. What corruptions draw is a rank's own. A loader with worker processes asks for whole batches by their
    step, so that any number of workers gives the same ones:

        DataLoader(batches, batch_size=None, sampler=range(batches.start, len(batches)), num_workers=2)
    """

    items: None = None
    """Rows are drawn from a stream."""

    def __init__(
        self,
        stream: TokenStream,
        tokenizer: PreTrainedTokenizerFast,
        layout: Layout,
        corruptions: Sequence[Corruption],
        *,
        rows: int,
        length: int,
        steps: int,
        seed: int,
        grains: int = 1,
    ) -> None:
        self.layout, self.corruptions = layout, corruptions
        self.length, self.steps, self.seed = length, steps, seed
        self.segments = max((corruption.segments for corruption in corruptions), default=1)
        self.windows = max(1, rows // self.segments)
        self.grains = math.gcd(self.windows, grains)
        """Into how many parts a batch can be cut."""
        self.start = 0
        self.before, self.after = frame(tokenizer) if layout.framed else ([], [])
        self.inner = length - len(self.before) - len(self.after)
        self.width = self.segments * self.inner
        self.stream = stream
        # a corpus shorter than one batch is read over and over: a tiny run is a valid run
        turns = max(1, -(-(self.windows + 2) * self.width // len(stream.tokens)))
        starts = stream.starts
        if turns > 1:
            starts = np.concatenate([stream.starts + turn * len(stream.tokens) for turn in range(turns)])
        self._ground = Ground(
            starts,
            turns * len(stream.tokens),
            self.width,
            self.windows,
            framing=len(self.before) + len(self.after),
            closes=bool(self.after),
        )
        self.ids = token_ids(tokenizer, stream.counts)
        has = {"mask": self.ids.mask >= 0, "sentinels": bool(self.ids.sentinels)}
        for corruption in corruptions:
            # a tokenizer that came with a checkpoint is known only now
            if lacking := sorted(need for need in corruption.needs_tokens if not has[need]):
                raise RecipeError(
                    f"corruption {corruption.name} needs a tokenizer with {', '.join(lacking)}, and the checkpoint's has none; "
                    "use another corruption, or start from another checkpoint"
                )

    @property
    def tokens_per_batch(self) -> int:
        return self.windows * self.segments * self.length

    @property
    def steps_per_epoch(self) -> int:
        """Steps in which all of the text is read once."""
        return self.layout.steps_per_epoch(self._ground)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for step in range(self.start, self.steps):
            yield self[step]

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        """The batch of optimizer step `step` as torch tensors, by field name."""
        return self.piece(step, 0, 1)

    def piece(self, step: int, number: int, of: int) -> dict[str, Tensor]:
        """Part `number` of the batch of optimizer step `step`, cut into `of` parts, which must divide `grains`."""
        import torch

        return {str(name): torch.from_numpy(value) for name, value in self.batch(step, number, of).items()}

    def continues(self, step: int) -> bool:
        """Whether the rows of `step` continue those of the step before."""
        return self.layout.continues(self._ground, step)

    def batch(self, step: int, number: int = 0, of: int = 1) -> Arrays:
        """Part `number` of `of` of the corrupted batch of optimizer step `step`: input_ids [windows / of · segments, length]
        and what corruptions add."""
        placed = self.layout.placed(self._ground, self.seed, step)
        size, share = self.windows // self.grains, self.grains // of
        first = number * share
        clean = self._clean(placed.within(first * size, (first + share) * size), share * size)
        if not self.corruptions:
            return clean
        made = [
            self._corrupted(grain, step, nth) for nth, grain in enumerate(parted(clean, share, self.segments), first)
        ]
        return joined(made, self.segments)

    def _clean(self, placed: Placed, windows: int) -> Arrays:
        if placed.lengths is None:
            return self._windows(placed.begins)
        frame = (self.before, self.after)
        return packed_rows(self.stream, self._ground.starts, placed, frame, (windows, self.length), self.ids.pad)

    def _corrupted(self, grain: Arrays, step: int, number: int) -> Arrays:
        random = np.random.default_rng([self.seed, 2, step, number])
        for corruption in self.corruptions:
            grain = corruption.apply(grain, self.ids, random)
        return grain

    def _windows(self, begins: NDArray[np.int64]) -> Arrays:
        rows = self._framed(self._pieces(self.stream.windows(begins, self.width)), self.before, self.after)
        numbers = self._pieces(document_numbers(self._ground.starts, begins, self.width))
        batch: Arrays = {Field.INPUT_IDS: rows, Field.ORIGINAL_IDS: rows, Field.DOCUMENTS: self._widened(numbers)}
        if self.stream.word_bits is not None:
            begins_word = self._pieces(self.stream.word_starts(begins, self.width))
            batch[Field.WORD_STARTS] = self._framed(begins_word, [1] * len(self.before), [1] * len(self.after))
        return batch

    def _pieces(self, windows: NDArray[np.generic]) -> NDArray[np.generic]:
        """[windows, width] as [windows · segments, inner]: first pieces of all windows, then second pieces, …"""
        return windows.reshape(-1, self.segments, self.inner).swapaxes(0, 1).reshape(-1, self.inner)

    def _widened(self, numbers: NDArray[np.generic]) -> NDArray[np.int64]:
        """Rows with their first and last value repeated where the frame stands."""
        rows = np.empty((len(numbers), self.length), dtype=np.int64)
        end = len(self.before) + self.inner
        rows[:, len(self.before) : end] = numbers
        rows[:, : len(self.before)] = numbers[:, :1]
        rows[:, end:] = numbers[:, -1:]
        return rows

    def _framed(self, pieces: NDArray[np.generic], before: list[int], after: list[int]) -> NDArray[np.int64]:
        rows = np.empty((len(pieces), self.length), dtype=np.int64)
        rows[:, : len(before)] = before
        rows[:, len(before) : len(before) + self.inner] = pieces
        rows[:, len(before) + self.inner :] = after
        return rows


def document_numbers(starts: NDArray[np.int64], begins: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """int64 [rows, width]: which document each token belongs to, of rows that begin at `begins` [rows] of a stream whose
    documents begin at `starts`, ascending."""
    # looked for at both ends of a row only: what begins in between is counted up
    ends = np.searchsorted(starts, np.concatenate([begins, begins + (width - 1)]), side="right") - 1
    first, inside = ends[: len(begins)], ends[len(begins) :] - ends[: len(begins)]
    numbers = np.zeros((len(begins), width), dtype=np.int64)
    numbers[:, 0] = first
    row = np.repeat(np.arange(len(begins)), inside)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(inside) - inside, inside)
    numbers[row, starts[first[row] + 1 + nth] - begins[row]] = 1
    return np.cumsum(numbers, axis=1)
