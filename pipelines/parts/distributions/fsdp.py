"""Fully sharded data parallelism: every rank holds a shard of each layer (Rajbhandari et al. 2020; Zhao et al.
2023)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar, cast

from pipelines.parts.distributions import Distribution

if TYPE_CHECKING:
    from pytorch_lightning.strategies import Strategy
    from torch import Tensor
    from torch.distributed.device_mesh import DeviceMesh
    from transformers import PreTrainedModel

T = TypeVar("T")
ENTRY = "compute_gathered"
"""Attribute of a sharded network: calls a function while the weights outside the units are gathered."""


def _call(function: Callable[[], T]) -> T:
    return function()


class FullySharded(Distribution, name="fsdp"):
    """Weights, gradients and moments sharded over the ranks; the weights of a layer are gathered only while it is
    computed.

    For networks whose optimizer state does not fit one device. Checkpoints are sharded too, one file per rank; the
    model that a stage saves is not. Units of sharding are the modules that the architecture lists in
    `_no_split_modules`.
    """

    paper = "arXiv:2304.11277"
    shards_weights = True

    def strategy(self, ranks: int) -> Strategy:
        from pytorch_lightning.strategies import ModelParallelStrategy

        return ModelParallelStrategy(data_parallel_size=ranks, tensor_parallel_size=1, save_distributed_checkpoint=True)

    def shard(self, network: PreTrainedModel, ranks: DeviceMesh) -> None:
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method

        units = set(network._no_split_modules or ())
        for module in network.modules():
            if type(module).__name__ in units:
                fully_shard(module, mesh=ranks)
        fully_shard(network, mesh=ranks)
        # heads call the backbone, or a part of a network with several heads: without this, weights outside the units
        # would be gathered only for calls of the whole network
        setattr(network, ENTRY, _call)
        register_fsdp_forward_method(network, ENTRY)

    def compute(self, network: PreTrainedModel, call: Callable[[], T]) -> T:
        result: T = getattr(network, ENTRY, _call)(call)
        return result

    def full_state_dict(self, network: PreTrainedModel) -> dict[str, Tensor]:
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        return cast("dict[str, Tensor]", get_model_state_dict(network, options=options))
