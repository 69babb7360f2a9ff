"""Embeddings with sparse gradients: only the rows that were looked up, for optimizers that support it.

torch fills a gradient of the table's size with zeros and adds a few rows to it; norm, clipping and optimizer then read
all of it. Here the gradient is the rows. They are accumulated at a separate leaf that shares the table's memory, and
not at the table: where an output layer that shares the table produces a dense gradient, autograd would copy that once
more to add the rows.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor, nn

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, SIZE, Kernel, loaded_library

LEAF_ATTRIBUTE = "_looked_up"
"""Attribute of a parameter whose optimizer supports sparse gradients: a weak reference to the leaf. Copies of the
parameter lack it."""

ROWS = Kernel("cursus_rows", POINTER, SIZE, SIZE, SIZE, POINTER, POINTER, POINTER, POINTER, POINTER)
ROW_SUMS = Kernel("cursus_row_sums", POINTER, POINTER, POINTER, POINTER, SIZE, SIZE, FLAG)
ADD_ROWS = Kernel("cursus_add_rows", POINTER, POINTER, POINTER, SIZE, SIZE, FLAG)


def collect_row_gradients(table: nn.Parameter) -> Tensor:
    """Collect the gradient of look-ups in `table` [V, W] at the returned leaf, sparse, from now on.

    The table's own gradient is that of its other uses: the caller adds the two, and clears both. Once the leaf is
    garbage-collected, all gradients arrive at the table again.
    """
    leaf = table.detach().requires_grad_()
    setattr(table, LEAF_ATTRIBUTE, weakref.ref(leaf))
    return leaf


def summed_rows(ids: Tensor, values: Tensor, height: int, skipped: int | None = None) -> Tensor:
    """Sparse [height, W], coalesced: row i is the sum of the `values` [N, W] whose `ids` [N] are i, in their order.

    Values with the id `skipped` are left out. `values` are float32, `ids` int64 in [0, height).
    """
    number, width = values.shape
    ids, values = ids.contiguous(), values.contiguous()
    rows, unique_rows = torch.empty(number, dtype=torch.int64), torch.empty((), dtype=torch.int64)
    order, begins, scratch = (torch.empty(size, dtype=torch.int32) for size in (number, number + 1, height))
    ROWS(
        ids.data_ptr(), number, height, -1 if skipped is None else skipped, rows.data_ptr(), order.data_ptr(),
        begins.data_ptr(), scratch.data_ptr(), unique_rows.data_ptr(),
    )  # fmt: skip
    rows = rows[: int(unique_rows)].clone()
    sums = torch.empty(len(rows), width)
    threads = torch.get_num_threads()
    ROW_SUMS(values.data_ptr(), order.data_ptr(), begins.data_ptr(), sums.data_ptr(), len(rows), width, threads)
    return torch.sparse_coo_tensor(rows[None], sums, (height, width), is_coalesced=True, check_invariants=False)


def coalesced(gradient: Tensor) -> Tensor:
    """The sparse `gradient`, coalesced: autograd drops the flag, and concatenates the gradients of several look-ups."""
    rows, values = gradient._indices()[0], gradient._values()
    if bool((rows[1:] > rows[:-1]).all()):
        return gradient
    return summed_rows(rows, values, len(gradient))


def add_rows(to: Tensor, rows: Tensor) -> Tensor:
    """Add the sparse and coalesced `rows` to `to` [V, W], float32, in place; returns `to`."""
    row_indices, values = rows._indices()[0].contiguous(), rows._values().contiguous()
    threads = torch.get_num_threads()
    ADD_ROWS(to.data_ptr(), row_indices.data_ptr(), values.data_ptr(), *values.shape, threads)
    return to


class EmbeddingFunction(torch.autograd.Function):
    """`apply(table [V, W], ids [...], skipped)`: [..., W].

    The gradient of `table` is sparse, without the row `skipped`.
    """

    @staticmethod
    def forward(ctx: Any, table: Tensor, ids: Tensor, skipped: int | None) -> Tensor:
        ctx.save_for_backward(ids)
        ctx.height, ctx.skipped = len(table), skipped
        return nn.functional.embedding(ids, table)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[Tensor, None, None]:
        (ids,) = ctx.saved_tensors
        return summed_rows(ids.flatten().long(), outer[0].flatten(0, -2), ctx.height, ctx.skipped), None, None


def _no_leaf() -> None:
    return None


class KernelEmbedding(nn.Embedding):
    """torch's embedding module, with a sparse gradient while it trains under an optimizer that supports it."""

    def forward(self, ids: Tensor) -> Tensor:
        table = self.row_gradient_leaf() if torch.is_grad_enabled() and loaded_library() is not None else None
        if table is None:
            return super().forward(ids)
        # torch does not type it
        result: Tensor = EmbeddingFunction.apply(table, ids, self.padding_idx)  # type: ignore[no-untyped-call]
        return result

    def row_gradient_leaf(self) -> Tensor | None:
        """The leaf that collects the sparse gradient of look-ups; None where the table itself gets a dense one."""
        leaf: Tensor | None = getattr(self.weight, LEAF_ATTRIBUTE, _no_leaf)()
        if leaf is None or not self.weight.requires_grad or not self.is_plain:
            return None
        return leaf if leaf.data_ptr() == self.weight.data_ptr() else None

    @property
    def is_plain(self) -> bool:
        """Whether the module does nothing but look up rows."""
        return self.max_norm is None and not self.scale_grad_by_freq and not self.sparse
