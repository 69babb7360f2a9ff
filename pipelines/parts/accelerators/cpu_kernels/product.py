"""Matrix products with any number of rows.

oneDNN generates code for each shape it meets, in 3 to 50 ms, which is more than most products take. The number of rows
is therefore rounded up, so that differing numbers of masked positions and lengths of texts give few shapes.
"""

from __future__ import annotations

import torch
from torch import Tensor

ROW_MULTIPLE = 32
"""The number of rows of a product is rounded up to a multiple of this."""


def pad_rows(rows: Tensor, value: float = 0) -> Tensor:
    """`rows` [N, ...], padded with rows of `value` to a multiple of ROW_MULTIPLE."""
    missing = -len(rows) % ROW_MULTIPLE
    if not missing:
        return rows
    return torch.cat([rows, rows.new_full((missing, *rows.shape[1:]), value)])


def padded_mm(rows: Tensor, matrix: Tensor) -> Tensor:
    """[N, O], contiguous: `rows` [N, I] · `matrix` [I, O]."""
    return torch.mm(pad_rows(rows), matrix)[: len(rows)]
