"""The gradient of a linear layer's weight in float32, in the processor's matrix tiles where it has some (Intel AMX).

Such a product sums over rows: torch turns one factor in memory first, which takes longer than the product, and rounds what it
says to bfloat16.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, SIZE, Kernel, opened

HAS_TILES = Kernel("cursus_has_tiles", POINTER)
WEIGHT_GRADIENT = Kernel("cursus_weight_gradient", *[POINTER] * 4, *[SIZE] * 3, *[FLAG] * 4)
PAIR = 32
"""Sides of both factors are in so many."""
DEPTH, TILE_BYTES, LINE = 32, 1024, 64
"""Rows that a tile sums over, and how it lies."""
SHALLOW, DEEP, CACHE = 8, 32, 2 << 20
"""Tiles of rows that are packed at a time, usually and at most; bytes that a core has near itself."""

_tiles: bool | None = None


def weight_gradient(gradient: Tensor, rows: Tensor) -> Tensor:
    """float32 [O, I]: gradientᵀ · rows, of a layer whose output has the `gradient` [N, O] and that has read `rows` [N, I].

    Both are bfloat16.
    """
    high, wide = gradient.shape[1], rows.shape[1]
    if high % PAIR or wide % PAIR or not len(rows) or not _has_tiles():
        return torch.mm(gradient.t(), rows).float()
    gradient, rows = gradient.contiguous(), rows.contiguous()
    # the narrower one is turned: each of its tiles meets more of the other's
    changed = wide < high
    left, right = (rows, gradient) if changed else (gradient, rows)
    threads = torch.get_num_threads()
    steps, sums = -(-len(rows) // DEPTH), high * wide * 4
    # sums that no cache holds are not written and read again for every few rows, where all rows fit
    large = sums > CACHE
    depth = steps if large and steps <= DEEP else SHALLOW
    own = threads * (min(high, wide) // PAIR + 1) * 2 * depth * TILE_BYTES
    room = torch.empty(own + (sums if steps > depth else 0) + LINE, dtype=torch.uint8)
    begin = -(-room.data_ptr() // LINE) * LINE
    result = torch.empty(high, wide)
    WEIGHT_GRADIENT(
        left.data_ptr(), right.data_ptr(), result.data_ptr(), begin, len(rows), left.shape[1], right.shape[1], int(changed),
        depth, int(large), threads,
    )  # fmt: skip
    return result


def _has_tiles() -> bool:
    """Whether they can be used; asked once."""
    global _tiles
    if _tiles is None and opened() is not None:
        answer = ctypes.c_int32(0)
        HAS_TILES(ctypes.addressof(answer))
        _tiles = bool(answer.value)
    return bool(_tiles) and opened() is not None
