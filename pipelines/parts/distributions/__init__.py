"""Distributions: data-parallel strategies, replicated or sharded.

Every rank reads its share of the same batch; distributions differ in where weights, gradients and optimizer moments are
kept. Chosen in params.yaml, never in a recipe: results do not depend on it.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, TypeVar

from pipelines.components import Component

if TYPE_CHECKING:
    from pytorch_lightning.strategies import Strategy
    from torch import Tensor
    from torch.distributed.device_mesh import DeviceMesh
    from transformers import PreTrainedModel

T = TypeVar("T")


class Distribution(Component):
    """A data-parallel strategy."""

    default_name: ClassVar[str] = "ddp"
    shards_weights: ClassVar[bool] = False
    """Whether each rank holds only a part of the weights."""

    @abstractmethod
    def strategy(self, ranks: int) -> Strategy:
        """Lightning's strategy for `ranks` ranks; a new one for each trainer."""

    def shard(self, network: PreTrainedModel, ranks: DeviceMesh) -> None:
        """Shard the weights of `network` over `ranks`, in place. Called once, before the optimizer is created."""

    def compute(self, network: PreTrainedModel, call: Callable[[], T]) -> T:
        """Return `call()`, which computes with any part of `network` and not only with the whole of it."""
        return call()

    def full_state_dict(self, network: PreTrainedModel) -> dict[str, Tensor]:
        """The unsharded weights of `network`, by name, on rank 0. A collective: every rank must call it."""
        return dict(network.state_dict())
