"""AdaGrad: rates that fall with the squares of all gradients so far (Duchi, Hazan & Singer 2011)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import Field

from pipelines.parts.optimizers.for_tables import TableOptimizer

if TYPE_CHECKING:
    import torch


class AdaGrad(TableOptimizer, name="adagrad"):
    """The gradient over the root of the sum of its squares: rare words keep a high rate, as in GloVe."""

    paper = "Duchi, Hazan & Singer 2011"

    lr: float = Field(0.05, gt=0)
    """Peak learning rate; the default is GloVe's (Pennington et al. 2014, §4.2)."""
    weight_decay: float = Field(0.0, ge=0)
    """Factor of the weights that is added to the gradient of matrices."""
    initial: float = Field(0.0, ge=0)
    """Sum of squares before the first step; GloVe's code begins at 1."""
    epsilon: float = Field(1e-10, ge=0)
    """ε, added to the root."""

    def create(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        import torch

        if self.sparse:  # torch builds sparse tensors in each step: say that it need not check them, or it warns
            torch.sparse.check_sparse_tensor_invariants.disable()  # type: ignore[no-untyped-call]
        return torch.optim.Adagrad(groups, initial_accumulator_value=self.initial, eps=self.epsilon)
