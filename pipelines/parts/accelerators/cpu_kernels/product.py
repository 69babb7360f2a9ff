"""Products with any number of rows.

oneDNN generates a program for each shape it meets, in 3 to 50 ms, which is more than most products take. So the number of rows is
rounded up: how many positions of a batch are masked, or how long its texts are, makes few shapes then.
"""

from __future__ import annotations

import torch
from torch import Tensor

ROWS = 32
"""Their number is a multiple of it."""


def in_whole(rows: Tensor, value: float = 0) -> Tensor:
    """`rows` [N, ...] and as many rows of `value` as there must be."""
    short = -len(rows) % ROWS
    if not short:
        return rows
    return torch.cat([rows, rows.new_full((short, *rows.shape[1:]), value)])


def times(rows: Tensor, matrix: Tensor) -> Tensor:
    """[N, O], contiguous: `rows` [N, I] · `matrix` [I, O]."""
    return torch.mm(in_whole(rows), matrix)[: len(rows)]
