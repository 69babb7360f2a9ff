"""Distributions: how a network is divided among the ranks that train it together.

Every rank reads its share of the same batch; what differs is where the weights, their gradients and the optimizer's moments
are. Chosen in params.yaml, never in a recipe: a result does not depend on it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from pipelines.components import Component

if TYPE_CHECKING:
    import pytorch_lightning as lightning
    from pytorch_lightning.strategies import Strategy
    from torch import Tensor, nn


class Distribution(Component):
    """One way of dividing."""

    usual: ClassVar[str] = "ddp"
    divides: ClassVar[bool] = False
    """Whether a rank holds only a part of the weights."""

    @abstractmethod
    def strategy(self) -> Strategy:
        """Lightning's strategy for it; a fresh one for each trainer."""

    def divide(self, module: lightning.LightningModule) -> None:
        """Divide the weights of `module` among the ranks, in place. Called once, before there is an optimizer."""

    def whole(self, network: nn.Module) -> dict[str, Tensor]:
        """The undivided weights of `network`, by name. Every rank takes part; all of them get the weights."""
        return dict(network.state_dict())
