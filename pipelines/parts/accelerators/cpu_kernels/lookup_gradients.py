"""Gradients of several look-ups in small tables, in one pass over the gradients of the rows.

A channel may be read by several look-ups, in one table or in several (`pipelines/parts/embeddings/boxes.py`). One at a
time, each reads all gradients again, and the gradients of a table that is read twice are added once more.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, SIZE, Kernel

SCATTER = Kernel("cursus_scatter", POINTER, POINTER, FLAG, SIZE, SIZE, FLAG)


def lookup_gradients(
    gradients: Tensor, tables: Sequence[Tensor], ids: Sequence[Tensor], sparse: Sequence[bool]
) -> list[Tensor | None]:
    """The gradient of each of `tables` [V, W], given the `gradients` [N, W] of the rows that `ids` [N] select; float32
    and int64.

    A table that occurs several times has one gradient, where it occurs first, and None elsewhere. `sparse` gradients
    are coalesced.
    """
    slots: list[Tensor] = list(ids)
    sums: dict[int, Tensor] = {}
    result: list[Tensor | None] = [None] * len(tables)
    for first, table in enumerate(tables):
        if table.data_ptr() in sums:
            continue
        height, width = table.shape
        same = [at for at, one in enumerate(tables) if one.data_ptr() == table.data_ptr()]
        if sparse[first]:
            read = torch.zeros(height, dtype=torch.bool)
            for at in same:
                read[ids[at]] = True
            rows, slot = read.nonzero().T, read.cumsum(0) - 1
            for at in same:
                slots[at] = slot[ids[at]]
            sums[table.data_ptr()] = values = torch.zeros(rows.shape[1], width)
            result[first] = torch.sparse_coo_tensor(
                rows, values, (height, width), is_coalesced=True, check_invariants=False
            )
        else:
            result[first] = sums[table.data_ptr()] = torch.zeros(height, width)
    slots = [one.contiguous() for one in slots]
    lookups = torch.tensor(
        [(sums[table.data_ptr()].data_ptr(), slot.data_ptr()) for table, slot in zip(tables, slots, strict=True)]
    )
    SCATTER(
        gradients.data_ptr(), lookups.data_ptr(), len(tables), len(gradients), gradients.shape[1],
        torch.get_num_threads(),
    )  # fmt: skip
    return result
