"""Batches of fixed-length rows of plain text: a pure function of (stream, seed, step).

A layout computes where the rows of each step begin, so that the batch of any step is built without iterating over
earlier ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.errors import RecipeError
from pipelines.parts.corruptions import Arrays, Corruption, TokenIds
from pipelines.parts.layouts import StreamShape
from pipelines.training.batches.corruption_shards import join_shards, split_into_shards
from pipelines.training.batches.packed_rows import packed_rows
from pipelines.training.batches.special_tokens import end_of_document, frame, texts_of
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedTokenizerFast

    from pipelines.parts.attention import AttentionPattern
    from pipelines.parts.layouts import Layout, RowSegments
    from pipelines.training.batches.token_stream import TokenStream


def token_ids(tokenizer: PreTrainedTokenizerFast, counts: NDArray[np.int64]) -> TokenIds:
    """The ids that corruptions need of a tokenizer, with `counts` [V], how often each token occurs in the text."""
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
        texts=texts_of(tokenizer),
        student_tokens=tokenizer.init_kwargs.get("student_tokens", 0),
    )


class PlainBatches:
    """The batches of a stage: an iterable over the steps from `start` on, with random access to the batch of any step.

    With several ranks, each reads its share of every batch's windows, in the order of the ranks: together they read
    what one rank alone would. Corruptions draw per corruption shard. A loader with worker processes indexes whole
    batches by step, so that any number of workers gives the same batches:

        DataLoader(batches, batch_size=None, sampler=range(batches.start, len(batches)), num_workers=2)
    """

    augmented: None = None
    """None: corruptions change plain text."""
    items: None = None
    """None: rows come from a token stream, not from numbered items."""

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
        corruption_shards: int = 1,
        attention: AttentionPattern | None = None,
    ) -> None:
        self.attention = attention
        self.layout, self.corruptions = layout, corruptions
        self.length, self.steps, self.seed = length, steps, seed
        self.segments = max((corruption.segments for corruption in corruptions), default=1)
        self.windows = max(1, rows // self.segments)
        self.corruption_shards = math.gcd(self.windows, corruption_shards)
        """Number of slices of a batch that are corrupted independently."""
        self.start = 0
        self.before, self.after = frame(tokenizer) if layout.framed else ([], [])
        self.inner = length - len(self.before) - len(self.after)
        self.width = self.segments * self.inner
        self.stream = stream
        # a corpus shorter than one batch is repeated, so that tiny runs are valid
        turns = max(1, -(-(self.windows + 2) * self.width // len(stream.tokens)))
        starts = stream.starts
        if turns > 1:
            starts = np.concatenate([stream.starts + turn * len(stream.tokens) for turn in range(turns)])
        self._shape = StreamShape(
            starts,
            turns * len(stream.tokens),
            self.width,
            self.windows,
            framing=len(self.before) + len(self.after),
            closes=bool(self.after),
        )
        self.ids = token_ids(tokenizer, stream.counts)
        has = {"mask": self.ids.mask >= 0, "sentinels": bool(self.ids.sentinels)}
        has["student_tokens"] = self.ids.student_tokens > 0
        for corruption in corruptions:
            # the tokenizer of a checkpoint is known only at this point; annotations look for the marks of speakers
            if lacking := sorted(need for need in corruption.needs_tokens if not has.get(need, True)):
                raise RecipeError(
                    f"corruption {corruption.name} needs a tokenizer with {', '.join(lacking)}, and the checkpoint's "
                    "has none; use another corruption, or start from another checkpoint"
                )

    @property
    def tokens_per_batch(self) -> int:
        return self.windows * self.segments * self.length

    @property
    def steps_per_epoch(self) -> int:
        """Number of steps in which all of the text is read once."""
        return self.layout.steps_per_epoch(self._shape)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        for step in range(self.start, self.steps):
            yield self[step]

    def __getitem__(self, step: int) -> dict[str, Tensor]:
        """The batch of optimizer step `step` as torch tensors, by field name."""
        return self.micro_batch(step, 0, 1)

    def micro_batch(self, step: int, number: int, of: int) -> dict[str, Tensor]:
        """Part `number` of `of` of the batch of optimizer step `step`; `of` must divide `corruption_shards`."""
        import torch

        return {str(name): torch.from_numpy(value) for name, value in self.batch(step, number, of).items()}

    def continues(self, step: int) -> bool:
        """Whether the rows of `step` continue those of the step before."""
        return self.layout.continues(self._shape, step)

    def batch(self, step: int, number: int = 0, of: int = 1) -> Arrays:
        """Part `number` of `of` of the corrupted batch of optimizer step `step`: input_ids [windows / of · segments,
        length] and the fields that corruptions and the attention pattern add."""
        fields = self._fields(step, number, of)
        return fields if self.attention is None else self.attention.apply(fields)

    def _fields(self, step: int, number: int, of: int) -> Arrays:
        segments = self.layout.segments(self._shape, self.seed, step)
        size, share = self.windows // self.corruption_shards, self.corruption_shards // of
        first = number * share
        clean = self._clean(segments.select_rows(first * size, (first + share) * size), share * size)
        if not self.corruptions:
            return clean
        shards = split_into_shards(clean, share, self.segments)
        return join_shards(
            [self._corrupted(shard, step, position) for position, shard in enumerate(shards, first)], self.segments
        )

    def _clean(self, segments: RowSegments, windows: int) -> Arrays:
        if segments.lengths is None:
            return self._windows(segments.begins)
        frame = (self.before, self.after)
        return packed_rows(self.stream, self._shape.starts, segments, frame, (windows, self.length), self.ids.pad)

    def _corrupted(self, shard: Arrays, step: int, number: int) -> Arrays:
        random = np.random.default_rng([self.seed, 2, step, number])
        for corruption in self.corruptions:
            shard = corruption.apply(shard, self.ids, random)
        return shard

    def _windows(self, begins: NDArray[np.int64]) -> Arrays:
        rows = self._framed(self._split(self.stream.windows(begins, self.width)), self.before, self.after)
        documents = self._split(document_ids(self._shape.starts, begins, self.width))
        batch: Arrays = {Field.INPUT_IDS: rows, Field.ORIGINAL_IDS: rows, Field.DOCUMENTS: self._widened(documents)}
        for name, channel in self.stream.channels.items():
            values = self._split(self.stream.values(name, begins, self.width))
            batch[name] = channel.framed(values, len(self.before), len(self.after))
        return batch

    def _split(self, windows: NDArray[np.generic]) -> NDArray[np.generic]:
        """[windows, width, …] as [windows · segments, inner, …]: first segments of all windows, then second ones, …"""
        shape = (self.inner, *windows.shape[2:])
        return windows.reshape(-1, self.segments, *shape).swapaxes(0, 1).reshape(-1, *shape)

    def _widened(self, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """Rows [.., length] whose first and last value are repeated at the special tokens."""
        rows = np.empty((len(values), self.length), dtype=np.int64)
        end = len(self.before) + self.inner
        rows[:, len(self.before) : end] = values
        rows[:, : len(self.before)] = values[:, :1]
        rows[:, end:] = values[:, -1:]
        return rows

    def _framed(self, values: NDArray[np.generic], before: list[int], after: list[int]) -> NDArray[np.int64]:
        """Rows [.., length]: `values` between the special tokens `before` and `after`."""
        rows = np.empty((len(values), self.length), dtype=np.int64)
        rows[:, : len(before)] = before
        rows[:, len(before) : len(before) + self.inner] = values
        rows[:, len(before) + self.inner :] = after
        return rows


def document_ids(starts: NDArray[np.int64], begins: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """int64 [rows, width]: the document of each token, for rows that begin at `begins` [rows] in a stream whose
    documents begin at `starts`, ascending."""
    # searched at both ends of a row only: the documents in between are counted up
    ends = np.searchsorted(starts, np.concatenate([begins, begins + (width - 1)]), side="right") - 1
    first, inside = ends[: len(begins)], ends[len(begins) :] - ends[: len(begins)]
    ids = np.zeros((len(begins), width), dtype=np.int64)
    ids[:, 0] = first
    row = np.repeat(np.arange(len(begins)), inside)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(inside) - inside, inside)
    ids[row, starts[first[row] + 1 + nth] - begins[row]] = 1
    return np.cumsum(ids, axis=1)
