"""Distributions: how a network is divided among the ranks that train it together.

Every rank reads its share of the same batch; what differs is where the weights, their gradients and the optimizer's moments
are. Chosen in params.yaml, never in a recipe: a result does not depend on it.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, ClassVar

from pipelines.components import Component

if TYPE_CHECKING:
    from pytorch_lightning.strategies import Strategy
    from torch import Tensor
    from torch.distributed.device_mesh import DeviceMesh
    from transformers import PreTrainedModel


class Distribution(Component):
    """One way of dividing."""

    default_name: ClassVar[str] = "ddp"
    shards_weights: ClassVar[bool] = False
    """Whether a rank holds only a part of the weights."""

    @abstractmethod
    def strategy(self, ranks: int) -> Strategy:
        """Lightning's strategy for so many ranks; a fresh one for each trainer."""

    def shard(self, network: PreTrainedModel, ranks: DeviceMesh) -> None:
        """Divide the weights of `network` among `ranks`, in place. Called once, before there is an optimizer."""

    def full_state_dict(self, network: PreTrainedModel) -> dict[str, Tensor]:
        """The undivided weights of `network`, by name, on the first rank. Every rank takes part."""
        return dict(network.state_dict())
