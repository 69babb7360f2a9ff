"""Projection of a student's hidden states to the width of its teacher's (Jiao et al. 2019, TinyBERT §3.1)."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn


class StateProjection(nn.Module):
    """Two linear maps without bias: W_e for the embeddings (eq. 9), W_h for the outputs of all layers (eq. 8).

    Args:
        width: hidden size of the student.
        target: hidden size of the teacher.
    """

    def __init__(self, width: int, target: int) -> None:
        super().__init__()
        self.embeddings = nn.Linear(width, target, bias=False)
        self.layers = nn.Linear(width, target, bias=False)

    def forward(self, states: Sequence[Tensor]) -> list[Tensor]:
        """Project each of `states` (layers + 1 of [B, L, width], embeddings first) to [B, L, target]."""
        return [self.embeddings(states[0]), *(self.layers(state) for state in states[1:])]
