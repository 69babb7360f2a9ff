"""GloVe's factorisation of co-occurrences by AdaGrad, an epoch at a time (Pennington, Socher & Manning 2014).

Shapes: C cells of the matrix that are not 0, V words, H elements of a vector, B cells in a batch. A word's factors are
its vector and its bias: [V, H + 1]; there are two tables of them, of words and of contexts.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Generator, Tensor

CELLS, STATE = "cells.npz", "state.npz"
MOST_EPOCHS = 1024
"""More epochs than an estimate may have: no two pairs of an epoch and a seed share a generator."""


def weighting(counts: NDArray[np.float64], cutoff: float, power: float) -> NDArray[np.float64]:
    """f(x) = min(1, (x / `cutoff`)^`power`) (eq. 9)."""
    return np.minimum(1.0, (counts / cutoff) ** power)


def errors(words: Tensor, contexts: Tensor, logs: Tensor) -> Tensor:
    """[B]: w · w̃ + b + b̃ − log x, from the factors [B, H + 1] of the words and contexts of cells (eq. 8)."""
    return (words[:, :-1] * contexts[:, :-1]).sum(1) + words[:, -1] + contexts[:, -1] - logs


class CellBatch(NamedTuple):
    """Cells of the matrix, each a tensor [B]."""

    rows: Tensor
    """int64: ids of their words."""
    columns: Tensor
    """int64: ids of their contexts."""
    weights: Tensor
    """f(x)."""
    logs: Tensor
    """log x."""


def descend(tables: Tensor, squares: Tensor, cells: CellBatch, rate: float) -> float:
    """Step of AdaGrad on Σ f(x) (w · w̃ + b + b̃ − log x)² / 2 over a batch of cells; return that sum before it.

    `tables` [2, V, H + 1] and `squares`, the sums of squared gradients, are changed in place, in the rows of the
    batch's words only. The gradient is that of half the squares, as in the authors' code.
    """
    import torch

    words, contexts = tables[0].index_select(0, cells.rows), tables[1].index_select(0, cells.columns)
    difference = errors(words, contexts, cells.logs)
    weighted = (cells.weights * difference).unsqueeze(1)
    for side, (ids, other) in enumerate(((cells.rows, contexts), (cells.columns, words))):
        gradient = other * weighted
        gradient[:, -1] = weighted[:, 0]
        touched, positions = torch.unique(ids, return_inverse=True)
        summed = gradient.new_zeros(len(touched), gradient.shape[1]).index_add_(0, positions, gradient)
        square = squares[side].index_select(0, touched).addcmul_(summed, summed)
        squares[side].index_copy_(0, touched, square)
        tables[side].index_add_(0, touched, summed * square.rsqrt_(), alpha=-rate)
    return float((weighted[:, 0] * difference).sum() / 2)


@dataclass(frozen=True)
class FactorEpoch:
    """One pass over all cells: a unit of work, so that a killed job continues with the epoch that is missing."""

    home: Path
    """Folder with the cells, and with a folder for each finished epoch."""
    epoch: int
    size: int
    """Number of words."""
    width: int
    rate: float
    batch: int
    seed: int = 0

    @property
    def name(self) -> str:
        return f"epoch-{self.epoch}"

    def __call__(self, folder: Path) -> None:
        import torch

        with np.load(self.home / CELLS) as stored:
            cells = CellBatch(*(torch.from_numpy(stored[name]) for name in CellBatch._fields))
        generator = torch.Generator().manual_seed(self.epoch + self.seed * MOST_EPOCHS)
        tables, squares = self._state(generator)
        order = torch.randperm(len(cells.logs), generator=generator)
        total = 0.0
        for begin in range(0, len(order), self.batch):
            chosen = order[begin : begin + self.batch]
            total += descend(tables, squares, CellBatch(*(part[chosen] for part in cells)), self.rate)
        np.savez(folder / STATE, tables=tables.numpy(), squares=squares.numpy(), loss=total / len(order))
        if self.epoch > 1:  # this epoch replaces the one before the last
            (self.home / f"epoch-{self.epoch - 2}" / STATE).unlink(missing_ok=True)

    def _state(self, generator: Generator) -> tuple[Tensor, Tensor]:
        """Factors and sums of squared gradients after the epoch before; in the first, random ones, and 1."""
        import torch

        if self.epoch:
            with np.load(self.home / f"epoch-{self.epoch - 1}" / STATE) as stored:
                return torch.from_numpy(stored["tables"]), torch.from_numpy(stored["squares"])
        shape = (2, self.size, self.width + 1)
        return (torch.rand(shape, generator=generator) - 0.5) / self.width, torch.ones(shape)
