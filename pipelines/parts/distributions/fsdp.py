"""Fully sharded data parallelism: every rank holds a part of each layer (Rajbhandari et al. 2020; Zhao et al. 2023)."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pipelines.parts.distributions import Distribution

if TYPE_CHECKING:
    from pytorch_lightning.strategies import Strategy
    from torch import Tensor
    from torch.distributed.device_mesh import DeviceMesh
    from transformers import PreTrainedModel


class FullySharded(Distribution, name="fsdp"):
    """Weights, gradients and moments divided among the ranks; a layer is whole only while it is computed.

    For networks whose moments do not fit one device. Checkpoints are divided too, a file a rank; the model that a stage
    leaves behind is whole. The units are those that the architecture says must not be split.
    """

    paper = "arXiv:2304.11277"
    shards_weights = True

    def strategy(self, ranks: int) -> Strategy:
        from pytorch_lightning.strategies import ModelParallelStrategy

        return ModelParallelStrategy(data_parallel_size=ranks, tensor_parallel_size=1, save_distributed_checkpoint=True)

    def shard(self, network: PreTrainedModel, ranks: DeviceMesh) -> None:
        from torch.distributed.fsdp import fully_shard

        units = set(network._no_split_modules or ())
        for module in network.modules():
            if type(module).__name__ in units:
                fully_shard(module, mesh=ranks)
        fully_shard(network, mesh=ranks)

    def full_state_dict(self, network: PreTrainedModel) -> dict[str, Tensor]:
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

        options = StateDictOptions(full_state_dict=True, cpu_offload=True)
        return cast("dict[str, Tensor]", get_model_state_dict(network, options=options))
