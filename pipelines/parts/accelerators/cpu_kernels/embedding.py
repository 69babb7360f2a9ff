"""Embeddings whose gradient is of the rows that were looked up, where an optimizer takes it so.

torch fills a gradient as large as the table with zeros and adds a few rows of it; norm, clipping and optimizer then read all of it.
Here autograd is given the rows. They arrive at a leaf of their own, which shares the table's memory, and not at the table: where an
output layer that shares the table sends a dense gradient, autograd would copy that once more to add the rows.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, SIZE, Kernel, opened

APART = "_looked_up"
"""Attribute of a parameter whose optimizer takes its gradient in rows: where to. A copy of the parameter has none."""

ROWS = Kernel("cursus_rows", POINTER, SIZE, SIZE, SIZE, POINTER, POINTER, POINTER, POINTER, POINTER)
ROW_SUMS = Kernel("cursus_row_sums", POINTER, POINTER, POINTER, POINTER, SIZE, SIZE, FLAG)
ADD_ROWS = Kernel("cursus_add_rows", POINTER, POINTER, POINTER, SIZE, SIZE, FLAG)


def take_rows(table: nn.Parameter) -> Tensor:
    """From now on, the gradient of what is looked up in `table` [V, W] arrives at the leaf that this returns, sparse.

    The table's own gradient is what else has been computed with it: whoever asks for this adds the two, and forgets both. Once
    nobody holds the leaf any more, all arrives at the table again.
    """
    apart = table.detach().requires_grad_()
    setattr(table, APART, weakref.ref(apart))
    return apart


def summed_rows(ids: Tensor, values: Tensor, height: int, skipped: int | None = None) -> Tensor:
    """Sparse [height, W], coalesced: row i is the sum of the `values` [N, W] whose `ids` [N] are i, in their order.

    Those of `skipped` count for nothing. `values` are float32, `ids` int64 in [0, height).
    """
    number, width = values.shape
    ids, values = ids.contiguous(), values.contiguous()
    rows, found = torch.empty(number, dtype=torch.int64), torch.empty((), dtype=torch.int64)
    order, begins, room = (torch.empty(size, dtype=torch.int32) for size in (number, number + 1, height))
    ROWS(
        ids.data_ptr(), number, height, -1 if skipped is None else skipped, rows.data_ptr(), order.data_ptr(),
        begins.data_ptr(), room.data_ptr(), found.data_ptr(),
    )  # fmt: skip
    rows = rows[: int(found)].clone()
    sums = torch.empty(len(rows), width)
    threads = torch.get_num_threads()
    ROW_SUMS(values.data_ptr(), order.data_ptr(), begins.data_ptr(), sums.data_ptr(), len(rows), width, threads)
    return torch.sparse_coo_tensor(rows[None], sums, (height, width), is_coalesced=True, check_invariants=False)


def each_once(gradient: Tensor) -> Tensor:
    """The sparse `gradient`, coalesced: autograd forgets that it was, and strings those of several pieces together."""
    rows, values = gradient._indices()[0], gradient._values()
    if bool((rows[1:] > rows[:-1]).all()):
        return gradient
    return summed_rows(rows, values, len(gradient))


def add_rows(to: Tensor, rows: Tensor) -> Tensor:
    """`to` [V, W], float32, once the sparse and coalesced `rows` have been added to it."""
    places, values = rows._indices()[0].contiguous(), rows._values().contiguous()
    threads = torch.get_num_threads()
    ADD_ROWS(to.data_ptr(), places.data_ptr(), values.data_ptr(), *values.shape, threads)
    return to


class LookedUp(torch.autograd.Function):
    """`apply(table [V, W], ids [...], skipped)`: [..., W]. The gradient of `table` is of rows, without that of `skipped`."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor, skipped: int | None) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.height, ctx.skipped = len(table), skipped
        return nn.functional.embedding(ids, table)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None]:
        (ids,) = ctx.saved_tensors
        return summed_rows(ids.flatten().long(), outer[0].flatten(0, -2), ctx.height, ctx.skipped), None, None


def _nowhere() -> None:
    return None


class Embedding(nn.Embedding):
    """torch's module, over the kernel while it trains under an optimizer that takes rows."""

    def forward(self, ids: Tensor) -> Tensor:
        table = self.in_rows() if torch.is_grad_enabled() and opened() is not None else None
        if table is None:
            return super().forward(ids)
        result: Tensor = LookedUp.apply(table, ids, self.padding_idx)  # type: ignore[no-untyped-call]  # torch does not type it
        return result

    def in_rows(self) -> Tensor | None:
        """The leaf that takes the gradient of what is looked up, in rows; None where that arrives at the table itself."""
        apart: Tensor | None = getattr(self.weight, APART, _nowhere)()
        if apart is None or not self.weight.requires_grad or not self.is_plain:
            return None
        return apart if apart.data_ptr() == self.weight.data_ptr() else None

    @property
    def is_plain(self) -> bool:
        """Whether it does nothing but look up."""
        return self.max_norm is None and not self.scale_grad_by_freq and not self.sparse
