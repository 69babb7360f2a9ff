"""Pruned weights that take the bytes of those that are left (Han, Mao & Dally 2016, Deep Compression, §2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipelines.errors import RecipeError
from pipelines.parts.compressions import Calibration, Change, Compression, Level

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class SparseStorage(Compression, name="sparse_storage"):
    """Store the matrices of the backbone that earlier stages have pruned as their weights that are not zero and a bit
    for each weight, in safetensors; the opened network has exactly the weights that it had before.

    Of a matrix with the share z of zeros, 1 + 32 (1 − z) bits a weight are left of 32; matrices that would not shrink
    stay as they are. Han et al. store the distance to the next weight that is left in 5 bits (§2), which is less from
    eight tenths of zeros on; a bit for each weight needs no fillers. An opened network computes with whole matrices:
    memory and speed are those of before. Nothing trains or compresses the result further: it is refused. Raises
    RecipeError for a backbone whose matrices have hardly any zeros.
    """

    paper = "arXiv:1510.00149"
    level = Level.BITS

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        from pipelines.networks.masked_weights import weight_of
        from pipelines.networks.projections import is_projection
        from pipelines.networks.sparse_weights import saves_bits, zeros_of

        layers = {name: module for name, module in network.base_model.named_modules() if is_projection(module)}
        weights = {name: weight_of(module) for name, module in layers.items()}
        change = {name: {"zeros": zeros_of(weight)} for name, weight in weights.items() if saves_bits(weight)}
        if not change:
            raise RecipeError(
                f"compression {self.name}: no matrix of the backbone has more than one in 32 weights that are zero, so "
                "that nothing would become smaller; prune single weights in a stage before"
            )
        return change

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        from torch import nn
        from transformers.pytorch_utils import Conv1D

        from pipelines.networks.sparse_weights import SparseLinear

        backbone = network.base_model
        for name in change:
            layer = backbone.get_submodule(name)
            assert isinstance(layer, (nn.Linear, Conv1D))
            backbone.set_submodule(name, SparseLinear(layer), strict=True)
        return network
