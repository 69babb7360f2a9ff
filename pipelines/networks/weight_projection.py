"""Projections between the weights of a narrow and of a wide network, shared by all layers (Zhao et al. 2019, §3.2)."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

Widths = tuple[int, int]
"""The number of elements of one axis in the narrow network, and in the wide one."""


class WeightProjection(nn.Module):
    """One matrix for each of `widths`, which maps an axis of weights in the direction of the argument: from the wide
    network to the narrow one (down), or back (up). Axes of other sizes stay, and so do the rows of a table.

    Matrices begin as random ones whose rows have an expected length of 1.
    """

    def __init__(self, widths: Iterable[Widths], *, up: bool) -> None:
        super().__init__()
        self.up = up
        sizes = {self._name(*one): one[::-1] if up else one for one in sorted({*widths})}
        self.matrices = nn.ParameterDict(
            {name: nn.Parameter(torch.randn(to, of) / of**0.5) for name, (to, of) in sizes.items()}
        )

    def forward(self, weight: Tensor, small: torch.Size, large: torch.Size, *, table: bool) -> Tensor:
        """`weight`, of the shape `large` (up: `small`), projected to the shape of the other network; of a `table`, each
        row."""
        for axis, (one, other) in enumerate(zip(small, large, strict=True)):
            if self._name(one, other) in self.matrices and not (table and axis == 0):
                matrix = self.matrices[self._name(one, other)].to(weight.dtype)
                weight = torch.tensordot(weight, matrix, ([axis], [1])).movedim(-1, axis)
        return weight

    @staticmethod
    def _name(small: int, large: int) -> str:
        return f"{small}_of_{large}"
