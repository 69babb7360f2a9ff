"""Strategies: which parameters train, at which rate, when."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from pipelines.components import Component

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Strategy(Component):
    """Parameter groups and their schedule."""

    @abstractmethod
    def groups(self, network: PreTrainedModel, lr: float, weight_decay: float) -> list[dict[str, Any]]:
        """Optimizer parameter groups (`params`, `lr`, `weight_decay`); parameters in none of them stay frozen."""

    @abstractmethod
    def factor(self, step: int, total: int) -> float:
        """The multiple of the peak rate at optimizer step `step` of `total`, in [0, 1]."""
