"""AdamW (Loshchilov & Hutter 2019) over many tensors as one call, and the norm of their gradients as another.

torch makes a list of every kind of tensor, and a call a tensor for the norm; and it clips by writing each gradient anew. Here the
addresses are a table that is kept from step to step, the work is cut into chunks of one size, so that neither the time hangs on
how many tensors there are nor the bits on how many threads, and what clips is a factor of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pipelines.parts.accelerators.cpu_kernels.library import FLAG, POINTER, REAL, SIZE, Kernel

CHUNK = 1 << 14
"""Elements: 64 KiB of each array."""

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
"""`Tensor` of the C file."""


class Moments(NamedTuple):
    """What AdamW keeps of a tensor of weights, under the names that torch gives it."""

    step: Tensor
    """float32 [], how many it has taken."""
    exp_avg: Tensor
    exp_avg_sq: Tensor


class Table:
    """Tensors that take a step together.

    `moved` is of each of them either None, or uint8 [V] of a table [V, W]: which rows have moments other than 0. A gradient of some
    rows asks for one. `copies` are bfloat16, as large as their weights, and get what these become; or None. All other tensors are
    float32, all are contiguous, and all must stay where they are; `stands` says whether they do.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        moments: Sequence[Moments],
        moved: Sequence[Tensor | None],
        copies: Sequence[Tensor | None],
    ) -> None:
        self._held = (*weights, *moments, *moved, *copies)
        """So that no address here is one of memory that has been freed."""
        self.entries = np.zeros(len(weights), TENSOR)
        self.entries["weights"] = self._where = [one.data_ptr() for one in weights]
        self.entries["steps"] = [one.step.data_ptr() for one in moments]
        self.entries["mean"] = [one.exp_avg.data_ptr() for one in moments]
        self.entries["square"] = [one.exp_avg_sq.data_ptr() for one in moments]
        self.entries["moved"] = [_address(one) for one in moved]
        self.entries["copy"] = self._copies = [_address(one) for one in copies]
        chunks: list[tuple[int, int, int]] = []
        for number, (one, known) in enumerate(zip(weights, moved, strict=True)):
            self.entries["width"][number] = width = 1 if known is None else one.shape[1]
            size = width * max(1, CHUNK // width)
            chunks += [(number, at, min(at + size, one.numel())) for at in range(0, one.numel(), size)]
        self._chunks = np.array(chunks, dtype=np.int64)
        self._sums, self._norm = np.empty(len(chunks)), np.empty(1)

    def stands(self, weights: Sequence[Tensor], copies: Sequence[Tensor | None]) -> bool:
        """Whether these are the weights and copies it was made of, in their places."""
        return self._where == [one.data_ptr() for one in weights] and self._copies == [_address(one) for one in copies]

    def set(self, begin: int, end: int, **settings: float) -> None:
        """Settings (`SETTINGS`) of the tensors from `begin` up to `end`."""
        for name, value in settings.items():
            self.entries[name][begin:end] = value

    def read(self, gradients: Sequence[Tensor]) -> None:
        """The gradients that `norm` and `step` are of: as large as their tensors, or sparse and coalesced where `moved` is kept."""
        self._read = [self._parts_of(one) for one in gradients]
        self.entries["gradient"] = [values.data_ptr() for values, _ in self._read]
        self.entries["rows"] = [_address(rows) for _, rows in self._read]
        self.entries["count"] = [0 if rows is None else len(rows) for _, rows in self._read]

    @staticmethod
    def _parts_of(gradient: Tensor) -> tuple[Tensor, Tensor | None]:
        if gradient.is_sparse:
            return gradient._values().contiguous(), gradient._indices()[0].contiguous()
        return gradient if gradient.is_contiguous() else gradient.contiguous(), None

    def norm(self) -> float:
        """Euclidean, of all gradients together; in float64 of sums over 1,024 elements in float32."""
        table, chunks, parts = self.entries.ctypes.data, self._chunks.ctypes.data, self._sums.ctypes.data
        NORM(table, chunks, len(self._chunks), parts, self._norm.ctypes.data, torch.get_num_threads())
        return float(self._norm[0])

    def step(self, factor: float) -> None:
        """A step on gradients that are `factor` times what they are."""
        table, chunks = self.entries.ctypes.data, self._chunks.ctypes.data
        ADAMW(table, len(self.entries), chunks, len(self._chunks), factor, torch.get_num_threads())


def _address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()
