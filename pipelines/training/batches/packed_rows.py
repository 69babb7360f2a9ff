"""Rows that pack segments of several documents, which do not attend to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipelines.parts.corruptions import Arrays
from pipelines.training.batches.token_channels import Frames
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipelines.parts.layouts import RowSegments
    from pipelines.training.batches.token_stream import TokenStream


def packed_rows(
    stream: TokenStream,
    starts: NDArray[np.int64],
    placed: RowSegments,
    frame: tuple[list[int], list[int]],
    shape: tuple[int, int],
    pad: int,
) -> Arrays:
    """Rows of `shape` [B, L] with the segments `placed`, each between the special tokens of `frame`, then `pad`.

    `starts` are the positions at which the documents of the stream begin, ascending. Position ids count from 0 in every
    segment; the padding at the end of a row counts as a segment of its own.
    """
    assert placed.lengths is not None and placed.rows is not None
    before, after = frame
    (rows, length), framing = shape, len(before) + len(after)
    sizes = placed.lengths + framing
    # begin of each segment within its row, and within the flattened rows
    behind = np.cumsum(sizes) - sizes
    first = placed.rows.searchsorted(np.arange(rows))
    begins = placed.rows * length + behind - behind[first][placed.rows]

    token = np.arange(int(placed.lengths.sum())) - np.repeat(np.cumsum(placed.lengths) - placed.lengths, placed.lengths)
    source = (np.repeat(placed.begins, placed.lengths) + token) % len(stream.tokens)
    target = np.repeat(begins + len(before), placed.lengths) + token

    frames = Frames(
        [begins + at for at in range(len(before))],
        [begins + len(before) + placed.lengths + at for at in range(len(after))],
        begins + len(before),
        begins + len(before) + placed.lengths - 1,
    )
    ids = np.full(rows * length, pad, dtype=np.int64)
    ids[target] = stream.tokens[source]
    for positions, special in zip((*frames.before, *frames.after), (*before, *after), strict=True):
        ids[positions] = special

    filled = np.bincount(placed.rows, weights=sizes, minlength=rows).astype(np.int64)
    document_starts = np.zeros(rows * length, dtype=np.int64)
    document_starts[begins] = 1
    padded = filled < length
    document_starts[(np.arange(rows) * length + filled)[padded]] = 1

    each = np.arange(int(sizes.sum())) - np.repeat(behind, sizes)
    tokens = np.repeat(begins, sizes) + each
    mask = (np.arange(length) < filled[:, None]).astype(np.int64)
    positions = np.maximum(np.arange(length) - filled[:, None], 0)
    positions.ravel()[tokens] = each
    documents = np.full(rows * length, -1, dtype=np.int64)
    documents[tokens] = np.repeat(starts.searchsorted(placed.begins, side="right") - 1, sizes)

    batch: Arrays = {
        Field.INPUT_IDS: ids.reshape(rows, length),
        Field.ORIGINAL_IDS: ids.reshape(rows, length),
        Field.DOCUMENTS: documents.reshape(rows, length),
        Field.DOCUMENT_STARTS: document_starts.reshape(rows, length),
        Field.POSITION_IDS: positions,
        Field.ATTENTION_MASK: mask,
    }
    for name, channel in stream.channels.items():
        values = channel.packed(rows * length, source, target, frames)
        batch[name] = values.reshape(rows, length, *channel.channel.shape)
    return batch
