"""Plain text as batches of fixed-length rows: a pure function of (documents, seed, step).

Documents are tokenised once and laid end to end with a separator between them; a layout says where the rows of each step
begin, so that the batch of any step is found without walking through the ones before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipelines.corruptions import Arrays, Corruption, TokenIds
from pipelines.errors import RecipeError
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedTokenizerFast

    from pipelines.layouts import Layout
    from pipelines.segmentations import Segmentation

CHUNK = 2048
"""Documents handed to the tokenizer at once."""
PROBE = "a"
"""A text whose encoding shows what a tokenizer puts before and after one."""


@dataclass(frozen=True)
class TokenStream:
    """Documents laid end to end."""

    tokens: NDArray[np.unsignedinteger]
    """[N] ids, a separator after every document."""
    starts: NDArray[np.int64]
    """[D] where each document begins, ascending."""
    word_starts: NDArray[np.bool_] | None = None
    """[N] whether a token begins a word; None without a segmentation."""

    @classmethod
    def encode(
        cls,
        documents: Sequence[str],
        tokenizer: PreTrainedTokenizerFast,
        most: int | None,
        seed: int,
        segmentation: Segmentation | None = None,
    ) -> TokenStream:
        """Tokenise `documents` in a random order fixed by `seed`, stopping once `most` tokens are there (None: all)."""
        order = np.random.default_rng([seed, 1]).permutation(len(documents))
        narrow = np.uint16 if len(tokenizer) <= 2**16 else np.uint32
        pieces: list[NDArray[np.unsignedinteger]] = []
        words: list[NDArray[np.bool_]] = []
        starts: list[int] = []
        total = 0
        end = end_of_document(tokenizer)
        fast = tokenizer.backend_tokenizer
        # a tokenizer remembers how it was last used, also when it comes from a checkpoint of somebody else's
        fast.no_truncation()
        fast.no_padding()
        for begin in range(0, len(order), CHUNK):
            chunk = [documents[index] for index in order[begin : begin + CHUNK]]
            encode = fast.encode_batch if segmentation is not None else fast.encode_batch_fast
            for text, encoding in zip(chunk, encode(chunk, add_special_tokens=False), strict=True):
                ids = [*encoding.ids, end]
                starts.append(total)
                total += len(ids)
                pieces.append(np.asarray(ids, dtype=narrow))
                if segmentation is not None:
                    words.append(_begins_word(encoding.offsets, segmentation.word_starts(text)))
            if most is not None and total >= most:
                break
        return cls(
            np.concatenate(pieces),
            np.asarray(starts, dtype=np.int64),
            np.concatenate(words) if segmentation is not None else None,
        )

    def repeated(self, times: int) -> TokenStream:
        """The same documents `times` over."""
        if times <= 1:
            return self
        return TokenStream(
            np.tile(self.tokens, times),
            np.concatenate([self.starts + turn * len(self.tokens) for turn in range(times)]),
            None if self.word_starts is None else np.tile(self.word_starts, times),
        )


def end_of_document(tokenizer: PreTrainedTokenizerFast) -> int:
    """The id that stands between documents: the tokenizer's separator, else its end of sequence."""
    end = tokenizer.sep_token_id if tokenizer.sep_token_id is not None else tokenizer.eos_token_id
    assert end is not None, "a tokenizer says how a document ends"
    return int(end)


def frame(tokenizer: PreTrainedTokenizerFast) -> tuple[list[int], list[int]]:
    """The special tokens that a tokenizer puts before a text, and after it."""
    fast = tokenizer.backend_tokenizer
    fast.no_truncation()
    fast.no_padding()
    bare = len(fast.encode(PROBE, add_special_tokens=False).ids)
    framed = fast.encode(PROBE)
    before = framed.special_tokens_mask.index(0)
    return framed.ids[:before], framed.ids[before + bare :]


def token_ids(tokenizer: PreTrainedTokenizerFast, tokens: NDArray[np.unsignedinteger]) -> TokenIds:
    """What corruptions must know of a tokenizer, and of the text `tokens`."""
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
        counts=np.bincount(tokens, minlength=len(tokenizer)),
    )


class PlainBatches:
    """An iterable over the batches of a stage, from any step on."""

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
    ) -> None:
        self.layout, self.corruptions = layout, corruptions
        self.length, self.steps, self.seed = length, steps, seed
        self.segments = max((corruption.segments for corruption in corruptions), default=1)
        self.windows = max(1, rows // self.segments)
        self.start = 0
        self.before, self.after = frame(tokenizer) if layout.framed else ([], [])
        self.inner = length - len(self.before) - len(self.after)
        self.width = self.segments * self.inner
        # a corpus shorter than one batch is repeated: a tiny run is a valid run
        self.stream = stream.repeated(-(-(self.windows + 2) * self.width // len(stream.tokens)))
        self.ids = token_ids(tokenizer, stream.tokens)
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
        return self.layout.steps_per_epoch(len(self.stream.tokens), self.width, self.windows)

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[dict[str, Tensor]]:
        import torch

        for step in range(self.start, self.steps):
            yield {str(name): torch.from_numpy(value) for name, value in self.batch(step).items()}

    def continues(self, step: int) -> bool:
        """Whether the rows of `step` continue those of the step before."""
        return self.layout.continues(len(self.stream.tokens), self.width, self.windows, step)

    def batch(self, step: int) -> Arrays:
        """The corrupted batch of optimizer step `step`: input_ids [windows · segments, length] and what corruptions add."""
        stream = self.stream
        begins = self.layout.begins(stream.starts, len(stream.tokens), self.width, self.windows, self.seed, step)
        places = begins[:, None] + np.arange(self.width)
        rows = self._framed(self._pieces(stream.tokens[places]), self.before, self.after)
        numbers = self._pieces(np.searchsorted(stream.starts, places, side="right") - 1)
        documents = np.pad(numbers, ((0, 0), (len(self.before), len(self.after))), mode="edge")
        batch: Arrays = {Field.INPUT_IDS: rows, Field.ORIGINAL_IDS: rows, Field.DOCUMENTS: documents}
        if stream.word_starts is not None:
            begins_word = self._pieces(stream.word_starts[places])
            batch[Field.WORD_STARTS] = self._framed(begins_word, [1] * len(self.before), [1] * len(self.after))
        random = np.random.default_rng([self.seed, 2, step])
        for corruption in self.corruptions:
            batch = corruption.apply(batch, self.ids, random)
        return batch

    def _pieces(self, windows: NDArray[np.generic]) -> NDArray[np.generic]:
        """[windows, width] as [windows · segments, inner]: first pieces of all windows, then second pieces, …"""
        return windows.reshape(self.windows, self.segments, self.inner).swapaxes(0, 1).reshape(-1, self.inner)

    def _framed(self, pieces: NDArray[np.generic], before: list[int], after: list[int]) -> NDArray[np.int64]:
        rows = np.empty((len(pieces), self.length), dtype=np.int64)
        rows[:, : len(before)] = before
        rows[:, len(before) : len(before) + self.inner] = pieces
        rows[:, len(before) + self.inner :] = after
        return rows


def _begins_word(offsets: Sequence[tuple[int, int]], starts: Sequence[int]) -> NDArray[np.bool_]:
    """Whether each token begins a word, and True for the separator behind them.

    A token begins a word when no other token stands between the word's first character and it; a token that spans the
    beginning of a word begins it too.
    """
    spans = np.asarray(offsets, dtype=np.int64).reshape(-1, 2)
    # the last word that begins before a token's end
    words = np.searchsorted(np.asarray(starts, dtype=np.int64), spans[:, 1] - 1, side="right")
    begins = np.ones(len(spans) + 1, dtype=np.bool_)
    begins[1:-1] = words[1:] != words[:-1]
    return begins
