"""The gradient of a linear layer's weight in float32, computed in matrix tiles (Intel AMX) where the processor has
them.

The product sums over rows: torch transposes one factor in memory first, which takes longer than the product, and rounds
the result to bfloat16.
"""

from __future__ import annotations

import ctypes

import torch
from torch import Tensor

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, SIZE, Kernel, loaded_library

HAS_TILES = Kernel("cursus_has_tiles", POINTER)
WEIGHT_GRADIENT = Kernel("cursus_weight_gradient", *[POINTER] * 4, *[SIZE] * 3, *[FLAG] * 4)
BLOCK = 32
"""Columns of both factors are processed in blocks of this size."""
DEPTH, TILE_BYTES, LINE = 32, 1024, 64
"""Rows that a tile sums over, bytes of a tile, and bytes of a cache line."""
SHALLOW, DEEP, CACHE = 8, 32, 2 << 20
"""Tiles of rows that are packed at a time, usually and at most; bytes of a core's private cache."""

_tiles: bool | None = None


def weight_gradient(gradient: Tensor, rows: Tensor) -> Tensor:
    """float32 [O, I]: gradientᵀ · rows, of a layer whose output has the `gradient` [N, O] and that has read `rows` [N,
    I].

    Both are bfloat16.
    """
    outputs, inputs = gradient.shape[1], rows.shape[1]
    if outputs % BLOCK or inputs % BLOCK or not len(rows) or not _has_tiles():
        return torch.mm(gradient.t(), rows).float()
    gradient, rows = gradient.contiguous(), rows.contiguous()
    # the narrower factor is transposed: each of its tiles is used with more tiles of the other
    swapped = inputs < outputs
    left, right = (rows, gradient) if swapped else (gradient, rows)
    threads = torch.get_num_threads()
    steps, sums = -(-len(rows) // DEPTH), outputs * inputs * 4
    # sums that exceed the cache are not written and read again for every few rows, where all rows fit
    large = sums > CACHE
    depth = steps if large and steps <= DEEP else SHALLOW
    tile_bytes = threads * (min(outputs, inputs) // BLOCK + 1) * 2 * depth * TILE_BYTES
    scratch = torch.empty(tile_bytes + (sums if steps > depth else 0) + LINE, dtype=torch.uint8)
    begin = -(-scratch.data_ptr() // LINE) * LINE
    result = torch.empty(outputs, inputs)
    WEIGHT_GRADIENT(
        left.data_ptr(), right.data_ptr(), result.data_ptr(), begin, len(rows), left.shape[1], right.shape[1],
        int(swapped), depth, int(large), threads,
    )  # fmt: skip
    return result


def _has_tiles() -> bool:
    """Whether the processor's matrix tiles can be used; checked once per process."""
    global _tiles
    if _tiles is None and loaded_library() is not None:
        answer = ctypes.c_int32(0)
        HAS_TILES(ctypes.addressof(answer))
        _tiles = bool(answer.value)
    return bool(_tiles) and loaded_library() is not None
