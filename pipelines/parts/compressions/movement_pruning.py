"""Unstructured pruning by movement (Sanh, Wolf & Rush 2020)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pydantic import Field

from pipelines.parts.compressions import Change
from pipelines.parts.compressions.magnitude_pruning import MagnitudePruning

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class MovementPruning(MagnitudePruning, name="movement_pruning"):
    """Set those weights of every matrix in the layers of the backbone to zero that training moves towards zero, in the
    course of the stage along the curve of `magnitude_pruning`; afterwards they stay.

    A weight's score is −Σ gradient · weight over the steps so far (§4, eq. 2), with the gradients as they are clipped
    for the optimizer. While zeros grow, a weight that is zero may return (§4, straight-through). The weights to remove
    are those of the lowest scores of each matrix (hard movement pruning).
    """

    paper = "arXiv:2005.07683"

    gradually: float = Field(0.5, gt=0, le=1)
    """Share of the stage's optimizer steps in the course of which weights become zero."""

    def constraint(self, network: PreTrainedModel, change: Change) -> Callable[[float], None]:
        from pipelines.networks.masked_weights import weight_of
        from pipelines.networks.movement import MovementMask

        weights = [weight_of(network.base_model.get_submodule(name)) for name in change]
        return MovementMask(weights, self.share, self._zeros_after)
