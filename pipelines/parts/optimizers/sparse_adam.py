"""Adam for tables of word vectors: only the rows of a batch take a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from pipelines.parts.optimizers import Decay, Optimizer

if TYPE_CHECKING:
    import torch


class SparseAdam(Optimizer, name="sparse_adam"):
    """Adam whose moments change only in the rows that have a gradient: a step costs the batch, not the vocabulary.

    Unlike Adam's, the moments of a word do not decay while it does not occur.
    """

    paper = "arXiv:1412.6980"
    trains_dense: ClassVar[bool] = False

    lr: float = Field(1e-3, gt=0)
    """Peak learning rate."""
    weight_decay: float = Field(0.0, ge=0)
    """0: rows without a gradient do not decay."""
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay of the running means of gradients and of their squares."""
    epsilon: float = Field(1e-8, gt=0)
    """ε, added to the root of the second moment."""

    @property
    def sparse_gradients(self) -> bool:
        return True

    def create(self, groups: list[dict[str, Any]]) -> torch.optim.Optimizer:
        import torch

        return torch.optim.SparseAdam(groups, betas=self.betas, eps=self.epsilon)
