"""What structured pruning by data shares: how much the loss depends on neurons or layers, and which of them go first.

The importance of a unit is E|∂L/∂ξ| over the calibration examples, where the gate ξ multiplies what the unit adds
(Michel, Levy & Neubig 2019, eq. 2, for heads). It is the first term of the Taylor series of the change of the loss
without the unit: |Σ w · ∂L/∂w| over the weights w out of a neuron (Molchanov et al. 2019, §3.1, eq. 8, whose square is
a magnitude here).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from pipelines.errors import RecipeError
from pipelines.parts.compressions import Calibration, Compression
from pipelines.vocabulary import Field

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor
    from transformers import PreTrainedModel

    from pipelines.networks.gates import GatedUnits


class OrderedPruning(Compression):
    """Base class of compressions that remove the units whose gates the loss depends on least."""

    order: Literal["importance", "random"] = "importance"
    """Which units go first; `random` is drawn by the stage's seed, as a baseline."""

    @property
    def needs_gradients(self) -> bool:
        return self.order == "importance"

    @property
    def draws(self) -> bool:
        return True

    def scores(
        self, network: PreTrainedModel, sites: Sequence[GatedUnits], masks: Sequence[Tensor], calibration: Calibration,
        random: np.random.Generator,
    ) -> list[NDArray[np.float64]]:  # fmt: skip
        """For each of `sites` [units]: the importance of its units in the network whose gates are `masks`, or numbers
        drawn by `random`; the lowest go first."""
        if self.order == "importance":
            return gate_importance(network, sites, masks, calibration)
        return [random.random(one.count) for one in sites]


def gate_importance(
    network: PreTrainedModel, sites: Sequence[GatedUnits], masks: Sequence[Tensor], calibration: Calibration
) -> list[NDArray[np.float64]]:
    """For each of `sites` the importance [units] of its units, in the network whose gates are `masks`.

    Raises RecipeError for a network whose states do not have the rows of the batch first: its gates would not be those
    of an example.
    """
    import torch

    from pipelines.networks.gates import gated

    totals = [np.zeros(len(mask)) for mask in masks]
    examples = 0
    for batch in calibration.batches():
        rows = len(batch[Field.INPUT_IDS])
        with gated(sites, masks) as used:
            loss = calibration.loss(network, batch)
        gates = [one for calls in used for one in calls]
        if any(len(one) != rows for one in gates):
            raise RecipeError(
                f"the states of the backbone {network.config.model_type} do not have the examples of a batch first, so "
                "that what each of them loses without a part is not known"
            )
        gradients = iter(torch.autograd.grad(loss, gates, allow_unused=True, materialize_grads=True))
        examples += rows
        for total, calls in zip(totals, used, strict=True):
            of_rows = torch.stack([next(gradients) for _ in calls]).sum(0)
            # the loss is a mean over rows: of each row by itself, it is that many times as large
            total += rows * of_rows.abs().double().sum(0).cpu().numpy()
    return [total / examples for total in totals]


def remove_least(masks: Sequence[Tensor], scores: Sequence[NDArray[np.float64]], keep: int, least: int = 1) -> None:
    """Set the masks of the units of the lowest scores to 0 until `keep` are left, at least `least` of each site."""
    ranked = sorted((float(score), site, unit) for site, one in enumerate(scores) for unit, score in enumerate(one))
    kept = [mask.tolist() for mask in masks]
    counts = [int(sum(one)) for one in kept]
    for _, site, unit in ranked:
        if sum(counts) <= keep:
            break
        if kept[site][unit] and counts[site] > least:
            kept[site][unit] = 0.0
            counts[site] -= 1
    for mask, one in zip(masks, kept, strict=True):
        mask.copy_(mask.new_tensor(one))
