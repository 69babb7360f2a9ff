"""Unstructured pruning by magnitude with one threshold for all matrices (See, Luong & Manning 2016)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import Field

from pipelines.parts.compressions import Calibration, Change
from pipelines.parts.compressions.magnitude_pruning import MagnitudePruning

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import PreTrainedModel


class GlobalMagnitudePruning(MagnitudePruning, name="global_magnitude_pruning"):
    """Set the smallest weights of all matrices in the layers of the backbone together to zero, where they stay (§3.2,
    class-blind): matrices of small weights lose more than others, and `share` is that of all.

    Everything else is as in `magnitude_pruning`: `gradually` along the same curve, no record but the share, zeros that
    later stages keep.
    """

    paper = "arXiv:1606.09274"

    share: float = Field(0.3, gt=0, lt=1)
    """Share of the weights of all matrices together that become zero."""

    def choose(self, network: PreTrainedModel, calibration: Calibration | None) -> Change:
        return {name: {"zeros_of_all": self.share} for name in super().choose(network, calibration)}

    def rebuild(self, network: PreTrainedModel, change: Change) -> PreTrainedModel:
        from pipelines.networks.global_masks import zero_smallest_of_all

        if not self.gradually:
            zero_smallest_of_all(_weights(network, change), self.share)
        return network

    def constraint(self, network: PreTrainedModel, change: Change) -> Callable[[float], None]:
        from pipelines.networks.global_masks import KeptZerosOfAll

        keep = KeptZerosOfAll(_weights(network, change))
        return lambda progress: keep(self._zeros_after(progress))


def _weights(network: PreTrainedModel, change: Change) -> list[Tensor]:
    """The matrices that `change` names."""
    from pipelines.networks.masked_weights import weight_of

    return [weight_of(network.base_model.get_submodule(name)) for name in change]
