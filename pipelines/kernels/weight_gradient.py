"""The gradient of a weight: a product over the rows of a batch.

oneDNN is slow where it must read its first operand along columns (half as fast for 4,096 rows of 512). So the narrower
operand is transposed before, in registers; the answer, where it is transposed then, is made float32 while it is turned back.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pipelines.kernels.library import FLAG, POINTER, SIZE, Kernel

TRANSPOSE = Kernel("cursus_transpose", POINTER, SIZE, POINTER, SIZE, SIZE, SIZE, FLAG, FLAG)


def transposed(matrix: Tensor, kind: torch.dtype) -> Tensor:
    """[W, N], contiguous, of bfloat16 [N, W] with any distance between rows; as bfloat16 or float32."""
    if matrix.stride(1) != 1:
        matrix = matrix.contiguous()
    rows, width = matrix.shape
    result = torch.empty(width, rows, dtype=kind)
    TRANSPOSE(
        matrix.data_ptr(), matrix.stride(0), result.data_ptr(), rows, rows, width, torch.get_num_threads(),
        int(kind is torch.bfloat16),
    )  # fmt: skip
    return result


def weight_gradient(rows: Tensor, gradient: Tensor) -> Tensor:
    """float32 [O, I]: `gradient`ᵀ [N, O] · `rows` [N, I], both bfloat16, rounded once to bfloat16 as autocast does."""
    width, outer = rows.shape[1], gradient.shape[1]
    if width < outer:
        return transposed(torch.mm(transposed(rows, torch.bfloat16), gradient), torch.float32)
    if width > outer:
        return torch.mm(transposed(gradient, torch.bfloat16), rows).float()
    return torch.mm(gradient.t(), rows).float()
