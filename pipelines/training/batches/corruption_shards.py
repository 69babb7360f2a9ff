"""A batch is made of grains: equal parts that are corrupted each by itself, whoever needs them.

What a rank reads at a time is one grain or several of them in a row. So the rows of a batch are the same for any number of
ranks and of accumulated steps, and no rank makes more than it reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.parts.corruptions import Arrays
from pipelines.vocabulary import OF_MASKED, OF_WINDOWS, ROW_NUMBERS, TOKEN_NUMBERS, Field

if TYPE_CHECKING:
    from numpy.typing import NDArray


def parted(rows: Arrays, grains: int, segments: int) -> list[Arrays]:
    """Rows [segments · windows, …] that no corruption has seen yet as `grains` equal parts, each laid out as the whole is."""
    if grains == 1:
        return [rows]
    parts = {
        name: [
            part.reshape(-1, *value.shape[1:])
            for part in np.split(value.reshape(segments, -1, *value.shape[1:]), grains, axis=1)
        ]
        for name, value in rows.items()
    }
    return [{name: of_field[grain] for name, of_field in parts.items()} for grain in range(grains)]


def joined(grains: Sequence[Arrays], segments: int) -> Arrays:
    """One batch of several: where a window gives `segments` rows, first pieces of all windows come first, as in each grain."""
    if len(grains) == 1:
        return grains[0]
    windows = [len(grain[Field.INPUT_IDS]) // segments for grain in grains]
    total, length = sum(windows), grains[0][Field.INPUT_IDS].shape[1]
    # the row of the batch that each row of each grain becomes
    rows = [
        (np.arange(segments)[:, None] * total + begin + np.arange(count)).ravel()
        for begin, count in zip(np.cumsum([0, *windows[:-1]]), windows, strict=True)
    ]
    order = np.argsort(np.concatenate(rows), kind="stable")
    result: Arrays = {}
    for name in grains[0]:
        values = [grain[name] for grain in grains]
        if name in OF_WINDOWS:
            result[name] = np.concatenate(values)
            continue
        if name in ROW_NUMBERS:
            values = [np.where(value >= 0, place[value], -1) for value, place in zip(values, rows, strict=True)]
        elif name in TOKEN_NUMBERS:
            values = [
                place[value // length] * length + value % length for value, place in zip(values, rows, strict=True)
            ]
        if name not in OF_MASKED:
            result[name] = np.concatenate(values)[order]
        elif Field.MASKED_POSITIONS in grains[0]:
            result[name] = np.concatenate(values)
        else:
            flat = [value.reshape(len(place), -1) for value, place in zip(values, rows, strict=True)]
            result[name] = np.concatenate(flat)[order].ravel()
    return _ascending(result)


def _ascending(batch: Arrays) -> Arrays:
    """The predicted positions in the order in which they stand."""
    if Field.MASKED_POSITIONS not in batch:
        return batch
    order: NDArray[np.int64] = np.argsort(batch[Field.MASKED_POSITIONS], kind="stable")
    return {name: value[order] if name in OF_MASKED else value for name, value in batch.items()}
