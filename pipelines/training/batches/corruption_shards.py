"""Corruption shards: equal slices of a batch, each corrupted by a random generator of its own.

A micro-batch is one shard or several consecutive ones. The rows of a batch are therefore the same for any number of
ranks and of accumulation steps, and a rank corrupts only the shards it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.parts.corruptions import Arrays
from pipelines.vocabulary import ROW_INDICES, TOKEN_INDICES, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray


def split_into_shards(rows: Arrays, shards: int, segments: int) -> list[Arrays]:
    """Split uncorrupted rows [segments · windows, …] into `shards` equal parts, each with the layout of the whole."""
    if shards == 1:
        return [rows]
    parts = {
        name: [
            part.reshape(-1, *value.shape[1:])
            for part in np.split(value.reshape(segments, -1, *value.shape[1:]), shards, axis=1)
        ]
        for name, value in rows.items()
    }
    return [{name: of_field[number] for name, of_field in parts.items()} for number in range(shards)]


def join_shards(shards: Sequence[Arrays], segments: int) -> Arrays:
    """Join shards into one batch: first the first segments of all windows, then the second ones, …, as within each
    shard."""
    if len(shards) == 1:
        return shards[0]
    windows = [len(shard[Field.INPUT_IDS]) // segments for shard in shards]
    total, length = sum(windows), shards[0][Field.INPUT_IDS].shape[1]
    # for each shard, the row of the batch that each of its rows becomes
    rows = [
        (np.arange(segments)[:, None] * total + begin + np.arange(count)).ravel()
        for begin, count in zip(np.cumsum([0, *windows[:-1]]), windows, strict=True)
    ]
    order = np.argsort(np.concatenate(rows), kind="stable")
    result: Arrays = {}
    for name in shards[0]:
        values = [shard[name] for shard in shards]
        if name.is_per_window:
            result[name] = np.concatenate(values)
            continue
        if name in ROW_INDICES:
            values = [np.where(value >= 0, row[value], -1) for value, row in zip(values, rows, strict=True)]
        elif name in TOKEN_INDICES:
            values = [row[value // length] * length + value % length for value, row in zip(values, rows, strict=True)]
        if not name.is_per_masked_position:
            result[name] = np.concatenate(values)[order]
        elif Field.MASKED_POSITIONS in shards[0]:
            result[name] = np.concatenate(values)
        else:
            flat = [value.reshape(len(row), -1) for value, row in zip(values, rows, strict=True)]
            result[name] = np.concatenate(flat)[order].ravel()
    return _with_sorted_positions(result)


def _with_sorted_positions(batch: Arrays) -> Arrays:
    """`batch` with its masked positions, and all fields per masked position, in ascending order of position."""
    if Field.MASKED_POSITIONS not in batch:
        return batch
    order: NDArray[np.int64] = np.argsort(batch[Field.MASKED_POSITIONS], kind="stable")
    return {name: value[order] if name.is_per_masked_position else value for name, value in batch.items()}
