"""Gradients of several look-ups in small tables, in one pass over the gradients of the rows.

A channel may be read by several look-ups, in one table or in several (`pipelines/parts/embeddings/boxes.py`). One at a
time, each reads all gradients again, and the gradients of a table that is read twice are added once more.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, SIZE, Kernel

SLOTS = Kernel("cursus_slots", POINTER, SIZE, SIZE, *[POINTER] * 4)
SCATTER = Kernel("cursus_scatter", POINTER, POINTER, FLAG, SIZE, SIZE, FLAG)


def lookup_gradients(
    gradients: Tensor, tables: Sequence[Tensor], ids: Sequence[Tensor], sparse: Sequence[bool]
) -> list[Tensor | None]:
    """The gradient of each of `tables` [V, W], given the `gradients` [N, W] of the rows that `ids` [N] select; float32
    and int64.

    A table that occurs several times has one gradient, where it occurs first, and None elsewhere. `sparse` gradients
    are coalesced.
    """
    addresses: list[tuple[int, int]] = [(0, 0)] * len(tables)
    result: list[Tensor | None] = [None] * len(tables)
    same: dict[int, list[int]] = {}
    for at, table in enumerate(tables):
        same.setdefault(table.data_ptr(), []).append(at)
    kept = []
    for numbers in same.values():
        first, number = numbers[0], len(ids[0])
        height, width = tables[first].shape
        slots = torch.cat([ids[at] for at in numbers])
        if sparse[first]:
            rows, slots = distinct(slots, height)
            sums = torch.zeros(len(rows), width)
            result[first] = torch.sparse_coo_tensor(
                rows[None], sums, (height, width), is_coalesced=True, check_invariants=False
            )
        else:
            result[first] = sums = torch.zeros(height, width)
        for position, at in enumerate(numbers):
            addresses[at] = (sums.data_ptr(), slots.data_ptr() + position * number * slots.element_size())
        kept.append(slots)
    lookups = torch.tensor(addresses)
    SCATTER(
        gradients.data_ptr(), lookups.data_ptr(), len(tables), len(gradients), gradients.shape[1],
        torch.get_num_threads(),
    )  # fmt: skip
    return result


def distinct(ids: Tensor, height: int) -> tuple[Tensor, Tensor]:
    """The distinct `ids` [N] in [0, `height`), ascending, and the index of each id among them; all int64."""
    rows, scratch = torch.empty(2, height, dtype=torch.int64)
    slots, count = torch.empty_like(ids), torch.empty((), dtype=torch.int64)
    SLOTS(
        ids.data_ptr(), len(ids), height, rows.data_ptr(), slots.data_ptr(), scratch.data_ptr(), count.data_ptr()
    )  # fmt: skip
    return rows[: int(count)].clone(), slots
