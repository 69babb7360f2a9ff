"""Pass the gradient of a residual connection to the block that it skips.

States that a block reads and that are added to the block's output get two gradients, which autograd sums in a separate
pass. The block's first product can accumulate into the other gradient instead: the sum is then part of the product, and
in float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipelines.parts.accelerators.cpu_kernels.product import ROW_MULTIPLE, padded_mm


def accept_residual_gradient(ctx: Any) -> None:
    """Mark, in the forward of a function whose first input is bfloat16 states, that its backward adds their other
    gradient."""
    ctx.residual_gradient = None
    ctx.accepts_residual_gradient = True


def residual_receiver(output: Tensor, residual: Tensor) -> Any:
    """The function that computed `output`, where it accepts a residual gradient and its input is `residual`; else None.

    A function is returned once only.
    """
    node: Any = output.grad_fn
    if residual.grad_fn is None or residual.dtype is not torch.bfloat16:
        return None
    if not getattr(node, "accepts_residual_gradient", False):
        return None
    if node.next_functions[0] != (residual.grad_fn, residual.output_nr):
        return None
    node.accepts_residual_gradient = False
    return node


def deposit(node: Any, gradient: Tensor) -> None:
    """Give `node` the gradient [..., I] of its states, which nothing else may read or write from now on.

    It belongs to the current backward pass: where that pass does not reach `node`, a later one must not use it.
    """
    node.residual_gradient = torch._C._current_graph_task_id(), gradient


def add_residual_gradient(ctx: Any, rows: Tensor, matrix: Tensor) -> Tensor:
    """[N, I], contiguous: `rows` [N, O] · `matrix` [O, I], plus the gradient that was deposited for this function, if
    any."""
    deposited, ctx.residual_gradient = ctx.residual_gradient, None
    if deposited is None or deposited[0] != torch._C._current_graph_task_id():
        return padded_mm(rows, matrix)
    other: Tensor = deposited[1].view(len(rows), -1)
    return other.add_(padded_mm(rows, matrix)) if len(rows) % ROW_MULTIPLE else other.addmm_(rows, matrix)
