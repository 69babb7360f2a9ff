"""The gradient of a residual, given to the layer beside it.

States that a block reads and that are added to what it says get two gradients, which autograd sums in a pass of its own. The
block's first product can start from the other one instead: the sum is then a part of the product, and in float32.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pipelines.parts.accelerators.cpu_kernels.product import ROWS, times


def starts_from(ctx: Any) -> None:
    """Offer, in the forward of a function that reads bfloat16 states first, to start from what they get from elsewhere."""
    ctx.beside = None
    ctx.offers = True


def beside(said: Tensor, residual: Tensor) -> Any:
    """The function that has said `said`, where it offers that and what it has read is `residual`; else None. It offers it once."""
    node: Any = said.grad_fn
    if residual.grad_fn is None or residual.dtype is not torch.bfloat16 or not getattr(node, "offers", False):
        return None
    if node.next_functions[0] != (residual.grad_fn, residual.output_nr):
        return None
    node.offers = False
    return node


def leave(node: Any, gradient: Tensor) -> None:
    """Give `node` the gradient [..., I] of its states, which nobody else reads or writes any more.

    It is that of one walk through the graph: where this one does not come to `node`, a later one must not find it.
    """
    node.beside = torch._C._current_graph_task_id(), gradient


def with_beside(ctx: Any, rows: Tensor, matrix: Tensor) -> Tensor:
    """[N, I], contiguous: `rows` [N, O] · `matrix` [O, I], and the gradient that was left for this function."""
    left, ctx.beside = ctx.beside, None
    if left is None or left[0] != torch._C._current_graph_task_id():
        return times(rows, matrix)
    other: Tensor = left[1].view(len(rows), -1)
    return other.add_(times(rows, matrix)) if len(rows) % ROWS else other.addmm_(rows, matrix)
