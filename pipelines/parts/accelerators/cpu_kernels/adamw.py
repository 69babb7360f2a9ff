"""AdamW (Loshchilov & Hutter 2019) over many tensors as one call, and the norm of their gradients as another.

torch builds a list of every kind of tensor, calls the norm once per tensor, and clips by rewriting each gradient. Here
a table of addresses is kept from step to step; the work is split into chunks of equal size, so that the time does not
depend on the number of tensors, nor the result on the number of threads; and clipping is a factor of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, REAL, SIZE, Kernel

CHUNK = 1 << 14
"""Elements of a chunk: 64 KiB of each array."""

NORM = Kernel("cursus_norm", POINTER, POINTER, SIZE, POINTER, POINTER, FLAG)
ADAMW = Kernel("cursus_adamw", POINTER, SIZE, POINTER, SIZE, REAL, FLAG)

POINTERS = ("weights", "gradient", "mean", "square", "steps", "moved", "rows", "copy")
SETTINGS = ("rate", "decay", "first", "second", "epsilon")
TENSOR = np.dtype(
    [
        *((name, np.uintp) for name in POINTERS),
        *((name, np.int64) for name in ("count", "width")),
        *((name, np.float64) for name in SETTINGS),
        ("terms", np.float32, 8),
    ],
    align=True,
)
"""The struct `Tensor` of the C file."""


class AdamMoments(NamedTuple):
    """State of AdamW for one tensor of weights, under torch's names."""

    step: Tensor
    """float32 [], the number of steps taken."""
    exp_avg: Tensor
    exp_avg_sq: Tensor


class TensorTable:
    """Addresses and settings of the tensors that take a step together.

    An entry of `rows_with_moments` is None, or uint8 [V] for an embedding table [V, W]: which rows have moments other
    than 0; tables with sparse gradients need one. An entry of `copies` is None, or bfloat16 of the weights' shape, and
    is written with the updated weights; `is_current` checks whether they are still these. All other tensors are
    float32; all are contiguous and must keep their addresses.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        moments: Sequence[AdamMoments],
        rows_with_moments: Sequence[Tensor | None],
        copies: Sequence[Tensor | None],
    ) -> None:
        self._tensors = (*weights, *moments, *rows_with_moments, *copies)
        """References, so that no address in the table points to freed memory."""
        self.entries = np.zeros(len(weights), TENSOR)
        self.entries["weights"] = [one.data_ptr() for one in weights]
        self.entries["steps"] = [one.step.data_ptr() for one in moments]
        self.entries["mean"] = [one.exp_avg.data_ptr() for one in moments]
        self.entries["square"] = [one.exp_avg_sq.data_ptr() for one in moments]
        self.entries["moved"] = [_address(one) for one in rows_with_moments]
        self.entries["copy"] = self._copies = [_address(one) for one in copies]
        chunks: list[tuple[int, int, int]] = []
        for number, (one, known) in enumerate(zip(weights, rows_with_moments, strict=True)):
            self.entries["width"][number] = width = 1 if known is None else one.shape[1]
            size = width * max(1, CHUNK // width)
            chunks += [(number, at, min(at + size, one.numel())) for at in range(0, one.numel(), size)]
        self._chunks = np.array(chunks, dtype=np.int64)
        self._sums, self._norm = np.empty(len(chunks)), np.empty(1)

    def is_current(self, copies: Sequence[Tensor | None]) -> bool:
        """Whether the table was built from these copies, at their present addresses."""
        return self._copies == [_address(one) for one in copies]

    def set(self, begin: int, end: int, **settings: float) -> None:
        """Set `SETTINGS` of the tensors from `begin` up to `end`."""
        for name, value in settings.items():
            self.entries[name][begin:end] = value

    def set_gradients(self, gradients: Sequence[Tensor]) -> None:
        """Set the gradients that `norm` and `step` use: dense, or sparse and coalesced for tables with
        `rows_with_moments`."""
        self._gradients = [self._values_and_rows(one) for one in gradients]
        self.entries["gradient"] = [values.data_ptr() for values, _ in self._gradients]
        self.entries["rows"] = [_address(rows) for _, rows in self._gradients]
        self.entries["count"] = [0 if rows is None else len(values) for values, rows in self._gradients]

    @staticmethod
    def _values_and_rows(gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        if gradient.is_sparse:
            values, rows = gradient._values().contiguous(), gradient._indices()[0].contiguous()
            # an empty tensor has the address 0, which the kernels read as "dense": one index that is not counted
            return values, rows if len(rows) else rows.new_zeros(1)
        return gradient if gradient.is_contiguous() else gradient.contiguous(), None

    def norm(self) -> float:
        """Euclidean norm of all gradients together; a float64 sum of float32 sums over 1,024 elements."""
        table, chunks, parts = self.entries.ctypes.data, self._chunks.ctypes.data, self._sums.ctypes.data
        NORM(table, chunks, len(self._chunks), parts, self._norm.ctypes.data, torch.get_num_threads())
        return float(self._norm[0])

    def step(self, factor: float) -> None:
        """Take a step on the gradients multiplied by `factor`."""
        table, chunks = self.entries.ctypes.data, self._chunks.ctypes.data
        ADAMW(table, len(self.entries), chunks, len(self._chunks), factor, torch.get_num_threads())


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()
