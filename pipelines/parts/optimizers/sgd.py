"""Stochastic gradient descent, with or without momentum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from pydantic import Field, model_validator

from pipelines.parts.optimizers.for_tables import TableOptimizer

if TYPE_CHECKING:
    import torch


class StochasticGradientDescent(TableOptimizer, name="sgd"):
    """The gradient times the rate (Robbins & Monro 1951), with heavy-ball or Nesterov momentum (Sutskever et al. 2013).

    word2vec and the AWD-LSTM are trained by it; weight decay is L2 regularisation here, added to the gradient.
    """

    paper = "Robbins & Monro 1951"

    lr: float = Field(0.1, gt=0)
    """Peak learning rate."""
    weight_decay: float = Field(0.0, ge=0)
    """Factor of the weights that is added to the gradient of matrices."""
    momentum: float = Field(0.0, ge=0, lt=1)
    """Share of the last step that the next one continues."""
    nesterov: bool = False
    """Whether the gradient is taken after the momentum's step."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.nesterov and not self.momentum:
            raise ValueError("nesterov needs a momentum")
        if self.sparse and self.momentum:
            raise ValueError("momentum moves rows without a gradient too: not together with sparse")
        return self

    def create(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        import torch

        return torch.optim.SGD(groups, momentum=self.momentum, nesterov=self.nesterov)
