"""Base class of optimizers that can train tables of word vectors by their rows."""

from __future__ import annotations

from pipelines.parts.optimizers import Optimizer


class TableOptimizer(Optimizer):
    """A rule that changes nothing where there is no gradient, so that a step needs the rows of its batch alone."""

    sparse: bool = False
    """Whether embedding tables get sparse gradients, for networks that are tables of word vectors: one rank only."""

    @property
    def sparse_gradients(self) -> bool:
        return self.sparse
